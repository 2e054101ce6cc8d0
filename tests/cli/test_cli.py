"""The command line as a shell sees it: imports, old names, the lines of a run, completion."""

import re
import shutil
from pathlib import Path

import pytest

from mpisim.cli import main
from mpisim.cli.parser import TABLE
from mpisim.core import machine
from mpisim.runs.experiment import parse
from mpisim.runs.labels import headline
from tests.comm.jobs import ended, python
from tests.helpers import settings, some_of, table

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


@some_of(2, words=["--help", "run --help", "plot --help", "--version", "data list"])
def test_mpi_is_not_started_for(words):
    python(NO_MPI.format(arguments=words.split()))


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
    words = settings(LOGISTIC, METHOD, CODE, "run.rounds=1")
    assert main(["run", *words, "--out", str(tmp_path / "first.h5")]) == 0  # prepares the data
    loaded = python(RUN, "run", *words, "--out", str(tmp_path / "log.h5"))
    assert UNUSED & set(loaded.split()) == set()


def test_old_names_are_the_new_ones_with_a_line(capsys):
    """Here with an option that neither has."""
    for old, new in TABLE["renamed"].items():
        lines = []
        for words in ([old], new):
            assert main([*words, "--no-such-option"]) == 2
            lines.append(capsys.readouterr().err)
        assert lines[0] == f"mpisim: `mpisim {old}` is now `mpisim {' '.join(new)}`\n{lines[1]}"


def test_default_log_is_named_by_content(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = settings(LOGISTIC, "run.rounds=1", "method={ name = 'gd', stepsize = 0.1 }")
    assert main(["run", *words]) == 0
    assert main(["run", *words]) == 2  # it exists already
    assert main(["run", *words, "--set", "run.seed=2"]) == 0
    assert len(list((tmp_path / "logs").glob("gd-*.h5"))) == 2


MARINA, RANDK = {"name": "marina", "stepsize": 0.1}, {"name": "randk", "k": 2}
GD, BIAS = {"name": "gd", "stepsize": "theory"}, {"bias": True}
LINES = [  # an experiment, the ranks of its job, and what of the line depends on both
    (
        table(MARINA, RANDK, "mushrooms", rounds=7),
        3,
        "mushrooms, n = 6, d = 112, 7 rounds, 3 ranks",
    ),
    (table(MARINA, RANDK, "/x/mine", problem=BIAS, ranks=2), 4, "mine, n = 6, 20 rounds, 2 ranks"),
    (table(GD, data="a9a", problem=BIAS), 1, "a9a, n = 6, d = 124, 20 rounds, 1 rank"),
]


@pytest.mark.parametrize(("tables", "started", "rest"), LINES)
def test_what_runs(tables, started, rest):
    what = "MARINA, RandK (K = 2)" if "compressor" in tables else "GD, no compression"
    line = f"{what}, non-convex loss on {rest}; log logs/x.h5"
    assert headline(parse(tables), started, Path("logs/x.h5")) == line


METHOD, CODE = "method={ name = 'marina', stepsize = 0.1 }", "compressor={ name = 'randk', k = 2 }"
QUADRATIC = "problem={ name = 'quadratic', dimension = 9, workers = 2 }"
WORDS = settings(QUADRATIC, METHOD, CODE, "run.rounds=20")


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


@pytest.fixture(autouse=True)
def _no_launcher(monkeypatch):
    """This process is no rank of any job."""
    for name in machine.RANKS + machine.SIZES:
        monkeypatch.delenv(name, raising=False)


def test_the_first_line_comes_before_mpi_and_the_data(tmp_path, monkeypatch):
    """As rank 0 of a job of mpirun sees it; the modules of the rounds are not loaded yet."""
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "3")
    line = python(FIRST, "run", *WORDS, "--out", str(tmp_path / "log.h5"))
    assert line.startswith("MARINA, RandK (K = 2), quadratic, n = 2, d = 9, 20 rounds, 3 ran")


@pytest.mark.parametrize(("step", "started"), [({}, False), ({"SLURM_STEP_NUM_TASKS": "2"}, True)])
def test_a_batch_script_of_slurm_is_no_job_of_ranks(monkeypatch, step, started):
    """By their manuals sbatch and srun set SLURM_PROCID, srun alone the number of tasks."""
    for name, value in ({"SLURM_PROCID": "0"} | step).items():
        monkeypatch.setenv(name, value)
    assert machine.launched() == started


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
        (["plot", "--where", "run.log_e"], "run.log_every"),
        (["run", "--track", "tens"], "tensorboard"),
    ],
)
def test_completion_in_bash(words, result, tmp_path, capsys):
    pytest.importorskip("shtab")
    assert main(["--completion", "bash"]) == 0
    script = tmp_path / "mpisim.bash"
    script.write_text(capsys.readouterr().out)
    ask = f"source {script}; COMP_WORDS=(mpisim {' '.join(words)}); COMP_CWORD={len(words)}"
    ask += '; _shtab_mpisim; echo "${COMPREPLY[@]}"'
    assert ended("bash", "-c", ask).stdout.split() == [result]
