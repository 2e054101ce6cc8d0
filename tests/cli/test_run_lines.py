"""The line at the start of a run, the one at its end, and shell completion."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mpisim.cli import main
from mpisim.core import launcher
from mpisim.runs.experiment import parse
from mpisim.runs.labels import headline
from tests.comm.jobs import ROOT
from tests.helpers import settings, table

MARINA, RANDK = {"name": "marina", "stepsize": 0.1}, {"name": "randk", "k": 2}
QUADRATIC = {"name": "quadratic", "dimension": 30, "workers": 9}
LINES = [
    (
        table(MARINA, RANDK, data="mushrooms", rounds=7),
        3,
        "MARINA, RandK (K = 2), non-convex loss on mushrooms, n = 6, d = 112, 7 rounds, 3 ranks",
    ),
    (
        table(MARINA, RANDK, data="/x/mine", problem={"bias": True}, ranks=2),
        4,
        "MARINA, RandK (K = 2), non-convex loss on mine, n = 6, 20 rounds, 2 ranks",
    ),
    (
        table({"name": "gd", "stepsize": "theory"}, data="a9a", problem={"bias": True}),
        1,
        "GD, no compression, non-convex loss on a9a, n = 6, d = 124, 20 rounds, 1 rank",
    ),
    (
        table(MARINA, RANDK) | {"problem": QUADRATIC},
        1,
        "MARINA, RandK (K = 2), quadratic, n = 9, d = 30, 20 rounds, 1 rank",
    ),
]


@pytest.mark.parametrize(("tables", "started", "line"), LINES)
def test_what_runs(tables, started, line):
    assert headline(parse(tables), started, Path("logs/x.h5")) == f"{line}; log logs/x.h5"


SETTINGS = ["method.name=marina", "method.stepsize=0.1", "compressor.name=randk", "compressor.k=2"]
SETTINGS += ["problem.name=quadratic", "problem.dimension=9", "problem.workers=2", "run.rounds=20"]
WORDS = settings(*SETTINGS)


def test_one_line_at_the_end(tmp_path, capfd):
    log = str(tmp_path / "log.h5")
    assert main(["run", *WORDS, "--out", log]) == 0
    out, err = capfd.readouterr()
    pattern = r"done: round 20, loss \S+, \|grad f\|\^2 \S+, \S.* s \(\S+ rounds/s\), log \S+\n"
    assert re.fullmatch(pattern, out)
    assert all(line.startswith("round ") for line in err.splitlines())  # where it takes long
    assert main(["run", *WORDS, "--out", log, "--resume"]) == 0
    out, _ = capfd.readouterr()
    assert re.fullmatch(r"done: round 20, loss \S+, \|grad f\|\^2 \S+, log \S+\n", out)


FIRST = """
import sys, time
from mpisim.cli import runs
from mpisim.cli import main

def say(text, **how):
    assert not {"mpi4py.MPI", "mpisim.runs.loop", "mpisim.runs.setup"} & set(sys.modules)
    sys.stdout.write(text)
    sys.exit(0)

runs.print = say
main(sys.argv[1:])
"""


def test_the_first_line_comes_before_mpi_and_the_data(tmp_path, monkeypatch):
    """As rank 0 of a job of mpirun sees it; the modules of the rounds are not loaded yet."""
    for name in launcher.RANKS + launcher.SIZES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "3")
    command = [sys.executable, "-c", FIRST, "run", *WORDS, "--out", str(tmp_path / "log.h5")]
    job = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert job.returncode == 0, job.stderr
    assert job.stdout.startswith("MARINA, RandK (K = 2), quadratic, n = 2, d = 9, 20 rounds, 3 ran")


@pytest.mark.drawn(3)
@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("words", "result"),
    [
        (["ru"], "run"),
        (["run", "--fo"], "--force"),
        (["new", "est"], "estimator"),
        (["check", "setup.c"], "setup.cfg"),
        (["tune", "--criterion", "mean-l"], "mean-loss"),
        (["run", "--set", "method.name=ef21-s"], "method.name=ef21-sgdm"),
        (["sweep", "--set", "run.layout=ded"], "run.layout=dedicated"),
        (["data", "fetch", "mushr"], "mushrooms"),
        (["plot", "--y", "subopt"], "suboptimality"),
        (["card", "rand-tau-"], "rand-tau-plus"),
        (["run", "--set", "problem.data=phish"], "problem.data=phishing"),
        (["show", "--sort", "subopt"], "suboptimality"),
    ],
)
def test_completion_in_bash(words, result, tmp_path, capsys):
    pytest.importorskip("shtab")
    assert main(["--completion", "bash"]) == 0
    script = tmp_path / "mpisim.bash"
    script.write_text(capsys.readouterr().out)
    ask = f"source {script}; COMP_WORDS=(mpisim {' '.join(words)}); COMP_CWORD={len(words)}"
    ask += '; _shtab_mpisim; echo "${COMPREPLY[@]}"'
    job = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, cwd=ROOT, check=True)
    assert job.stdout.split() == [result]
