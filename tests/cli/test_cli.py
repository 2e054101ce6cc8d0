"""The command line as a shell sees it."""

import subprocess
import sys

import pytest

from mpisim.cli import main
from mpisim.cli.parser import TABLE
from tests.comm.jobs import ROOT
from tests.helpers import settings

LOGISTIC = "problem={ name = 'logistic', data = 'sample', workers = 3 }"
NO_MPI = """
import sys
import mpisim, mpisim.cli
try:
    mpisim.cli.main({arguments!r})
except SystemExit as end:
    assert end.code == 0
assert not [name for name in sys.modules if name.startswith("mpi4py")], "MPI was started"
"""


@pytest.mark.drawn(2)
@pytest.mark.parametrize("words", ["--help", "run --help", "plot --help", "--version", "data list"])
def test_mpi_is_not_started_for(words):
    code = NO_MPI.format(arguments=words.split())
    job = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert job.returncode == 0, job.stderr


RUN = """
import sys
from mpisim.cli import main
assert main(sys.argv[1:]) == 0
assert "numba" in sys.modules and "mpisim.compressors.sparse" in sys.modules
print(*sys.modules)
"""
UNUSED = {
    *("mpi4py.MPI", "scipy.linalg", "scipy.optimize", "scipy.sparse", "sklearn"),
    *("torch", "matplotlib", "pandas", "tabulate", "jinja2", "mpisim.analysis"),
    "mpisim.runs.sweep",
    *("mpisim.compressors.sign", "mpisim.problems.quadratic", "mpisim.problems.torch"),
    *("mpisim.methods.estimators.diana", "mpisim.wire.levels"),
    "numba.typed.dictimpl",  # for the compiler: kernels are loaded from the disk
}


def test_a_run_of_one_process_imports_what_it_uses(tmp_path):
    method = "method={ name = 'marina', stepsize = 0.1 }"
    words = settings(LOGISTIC, method, "compressor={ name = 'randk', k = 2 }", "run.rounds=1")
    assert main(["run", *words, "--out", str(tmp_path / "first.h5")]) == 0  # prepares the data
    job = subprocess.run(
        [sys.executable, "-c", RUN, "run", *words, "--out", str(tmp_path / "log.h5")],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    assert UNUSED & set(job.stdout.split()) == set()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (["list", "{folder}"], ["show", "{folder}"]),
        (["table", "{folder}", "--target", "loss=0.5"], ["show", "{folder}", "--target=loss=0.5"]),
        (["report", "{folder}", "-o", "{out}"], ["plot", "{folder}", "-o", "{out}"]),
        (["claims", "--markdown", "run/saq/results"], None),
        (["figure", "saq-fig9"], None),
        (["info"], ["--info"]),
        (["completion", "bash"], ["--completion", "bash"]),
    ],
)
def test_old_names_do_what_the_new_ones_do(old, new, make_log, tmp_path, capsys):
    assert old[0] in TABLE["renamed"]
    new = new or ["study", {"claims": "--claims", "figure": "--draw"}[old[0]], *old[1:]]
    make_log(), make_log(seed=2)
    places, out = {"folder": tmp_path, "out": tmp_path / "page.html"}, []
    for words in (old, new):
        code = main([word.format(**places) for word in words])
        out.append((code, *capsys.readouterr()))
    now = " ".join(TABLE["renamed"][old[0]])
    moved = f"mpisim: `mpisim {old[0]}` is now `mpisim {now}`\n"
    assert out[0] == (*out[1][:2], moved + out[1][2])
    assert out[0][0] == (2 if old[0] == "figure" else 0)


def test_default_log_is_named_by_content(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = settings(LOGISTIC, "run.rounds=1", "method={ name = 'gd', stepsize = 0.1 }")
    assert main(["run", *words]) == 0
    assert main(["run", *words]) == 2  # it exists already
    assert main(["run", *words, "--set", "run.seed=2"]) == 0
    assert len(list((tmp_path / "logs").glob("gd-*.h5"))) == 2
