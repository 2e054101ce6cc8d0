"""The command line as a shell sees it."""

from __future__ import annotations

import subprocess
import sys

import pytest

import mpisim
from mpisim.cli import main
from tests.comm.jobs import ROOT

NO_MPI = """
import sys
import mpisim, mpisim.cli
try:
    mpisim.cli.main({arguments!r})
except SystemExit as end:
    assert end.code == 0
assert not [name for name in sys.modules if name.startswith("mpi4py")], "MPI was started"
"""


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["run", "--help"], ["plot", "--help"], ["--version"], ["data", "list"]],
)
def test_mpi_is_not_started_for(arguments):
    code = NO_MPI.format(arguments=arguments)
    job = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert job.returncode == 0, job.stderr


@pytest.mark.parametrize(
    "command", ["run", "plot", "show", "data", "info", "sweep", "tune", "theory"]
)
def test_every_command_has_help(command, capsys):
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0 and f"mpisim {command}" in capsys.readouterr().out


def test_version(capsys):
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"mpisim {mpisim.__version__}\n"


PLUGIN = """
import numpy as np
from mpisim.compressors.base import Compressor, compressor
from mpisim.core.schema import require
from mpisim.wire.sparse import SeededForm


@compressor("firstk")
class FirstK(Compressor):
    k: int

    def check(self):
        require(1 <= self.k <= self.d, "compressor.k", self.k, f"from 1 to d = {self.d}")

    def form(self, draw):
        indices = np.tile(np.arange(self.k), (draw.workers, 1))
        return SeededForm.of_rows(self.d, self.precision, indices, scale=1.0)

    def compress(self, v, draw):
        return self.form(draw).take(v)
"""


def test_a_compressor_of_ones_own(tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.py").write_text(PLUGIN)
    monkeypatch.chdir(tmp_path)
    settings = ["problem={ name = 'logistic', data = 'sample', workers = 3 }", "run.rounds=4"]
    settings += [
        "method={ name = 'ef21', stepsize = 0.1 }",
        "compressor={ name = 'firstk', k = 5 }",
    ]
    words = [word for setting in settings for word in ("--set", setting)]
    assert main(["run", *words, "--plugin", "mine", "--out", "log.h5"]) == 0
    assert main(["show", "log.h5"]) == 0
    assert "firstk" in capsys.readouterr().out


def test_default_log_is_named_by_content(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    settings = ["problem={ name = 'logistic', data = 'sample', workers = 3 }", "run.rounds=1"]
    words = [w for s in [*settings, "method={ name = 'gd', stepsize = 0.1 }"] for w in ("--set", s)]
    assert main(["run", *words]) == 0
    assert main(["run", *words]) == 2  # it exists already
    assert main(["run", *words, "--set", "run.seed=2"]) == 0
    assert len(list((tmp_path / "logs").glob("gd-*.h5"))) == 2
