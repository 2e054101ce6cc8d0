"""Jobs under mpirun: the same logs on any ranks; how a job ends at bad input, or at Ctrl-C."""

import json
import os
import pty
import re
import select
import shlex
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import h5py
import pytest

from mpisim.cli import main
from mpisim.compressors import COMPRESSORS
from mpisim.methods.estimators import ESTIMATORS
from mpisim.methods.method_table import METHODS
from mpisim.problems import PROBLEMS
from tests.comm import jobs
from tests.comm.jobs import HANG_SECONDS, ROOT, environment, mpirun, needs_mpirun
from tests.comm.layouts import experiments
from tests.helpers import columns
from tests.malformed import CASES, prepare


@needs_mpirun
def test_some_methods_and_compressors_on_1_2_3_and_6_ranks(seed):
    """One in forty of the experiments, drawn by the seed; `make trial` runs them all."""
    job = mpirun(6, "-m", "mpi4py", "-m", "tests.comm.layouts", str(seed))
    assert job.stdout.count(" 0 differences") == 2


@needs_mpirun
def test_runs_and_sweeps_on_some_of_4_ranks():
    assert "4 ranks checked" in mpirun(4, "-m", "mpi4py", "-m", "tests.comm.subsets").stdout


def test_all_methods_compressors_and_problems_take_part():
    """But for `torch`, which has layouts of its own: tests/problems/torch."""
    tables = list(experiments())
    identity = {"name": "identity"}
    compressors = [one.get("compressor", identity) for one in tables]
    compressors += [one["method"].get("hessian", identity) for one in tables]
    assert {name for one in compressors for name in names(one)} == built_in(COMPRESSORS)
    assert {one["problem"]["name"] for one in tables} == built_in(PROBLEMS) - {"torch"}
    paired = {name: ESTIMATORS[pair.estimator] for name, pair in METHODS.items()}
    assert {one["method"]["name"] for one in tables if "name" in one["method"]} == built_in(paired)


def built_in(kinds: Mapping[str, type]) -> set[str]:
    """The names of the package's own classes: other tests register plugins."""
    return {name for name, kind in kinds.items() if kind.__module__.startswith("mpisim.")}


def names(compressor: dict) -> Iterator[str]:
    yield compressor["name"]
    for inner in compressor.values():
        if isinstance(inner, dict):
            yield from names(inner)


RUN = [
    *("run", "--set", "method={ name = 'gd', stepsize = 0.1 }"),
    *("--set", "run.rounds=1000", "--set", "run.checkpoint_seconds=1"),
]
SAMPLE = [*RUN, "--set", "problem={ name = 'logistic', data = 'sample' }"]
TWIN = [*RUN, "--set", "problem={ name = 'logistic', data = 'twin' }"]
FAR = [*SAMPLE, "--set", "problem.name=least-squares", "--set", "method.stepsize=1e6"]
EXPECTED = {  # the exit code of all ranks, and what the one line of each command says
    "unknown flag": (2, ()),
    "k above d": (2, ()),  # on all ranks
    "no folder for the log": (2, ()),  # on rank 0
    "few workers": (2, ("problem.workers: 2 workers on 3 worker ranks",)),
    "other data": (2, ("data is logistic on twin sha256:", "on rank 1 (")),
    "other numpy": (2, ("numpy is", "on ranks 0, 2 (", "1.0 on rank 1")),
    "other flags": (2, ("command line is run --set", "run.rounds=7", "on rank 1 (")),
    "divergence": (3, ("diverged: loss ",)),
}


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """What one job of 3 ranks prints for each command, with its exit codes; and its folder."""
    folder = tmp_path_factory.mktemp("commands")
    prepare(folder)
    for name, shift in (("0", 0), ("1", 1)):
        (folder / name).mkdir()
        rows = (f"{(-1) ** i} {i + 1}:{i + shift}" for i in range(12))
        (folder / name / "twin").write_text("\n".join(rows) + "\n")
    log = ["--out", str(folder / "x.h5")]
    bad = {name: arguments for name, arguments, _ in CASES}
    given = {
        "few workers": [*SAMPLE, "--workers", "2", *log],
        "other data": [*TWIN, *log],
        "other numpy": [*TWIN, *log],
        "other flags": [*SAMPLE, *log],
        "divergence": [*FAR, "--out", str(folder / "far.h5")],
    }
    commands = [
        (name, given.get(name) or [a.replace("{d}", str(folder)) for a in bad[name]])
        for name in EXPECTED
    ]
    job = mpirun(3, "-m", "tests.comm.commands", str(folder), json.dumps(commands))
    parts = re.split(r"^== (.*?) ([0-9 ]+)\n", job.stderr, flags=re.M)
    names, codes, texts = parts[1::3], parts[2::3], parts[0::3]
    return {n: (c, t) for n, c, t in zip(names, codes, texts, strict=False)}, folder


@needs_mpirun
@pytest.mark.parametrize("name", EXPECTED)
def test_a_failure_is_one_line_and_the_same_code_on_all_ranks(name, ended):
    code, words = EXPECTED[name]
    message = next((message for case, _, message in CASES if case == name), words)
    codes, text = ended[0][name]
    lines = [line for line in text.splitlines() if line.startswith("mpisim: ")]
    assert len(lines) == 1 and "Traceback" not in text, text
    line = lines[0].replace(str(ended[1]), "")
    assert codes.split() == [str(code)] * 3 and all(word in line for word in message), line


@needs_mpirun
def test_bad_data_on_a_rank_ends_the_job(tmp_path):
    """The rank that reads the row aborts, and so no other command can be in this job."""
    prepare(tmp_path)
    [arguments] = [arguments for name, arguments, _ in CASES if name == "no colon"]
    arguments = [a.replace("{d}", str(tmp_path)) for a in arguments]
    job = mpirun(2, "-m", "mpisim", *arguments, code=2)
    lines = [line for line in job.stderr.splitlines() if line.startswith("mpisim: ")]
    assert len(lines) == 1 and "no-colon:2: '2' has no colon" in lines[0]


@needs_mpirun
def test_what_is_left_of_a_failure(ended):
    assert not (ended[1] / "x.h5").exists()
    with h5py.File(ended[1] / "far.h5") as file:
        assert file.attrs["status"] == "diverged" and file["rounds/round"].size > 1


CRASH = """
import ctypes
from mpisim.runs.host import guarded
guarded(lambda comm: ctypes.string_at(0))
"""


def test_a_crash_ends_a_rank_without_a_handler_that_may_hang():
    """Open MPI's prints "Process received signal" and allocates memory."""
    job = jobs.ended(sys.executable, "-c", CRASH, code=-signal.SIGSEGV)
    assert "Fatal Python error: Segmentation fault" in job.stderr
    assert "string_at" in job.stderr and "Process received signal" not in job.stderr


CLOSING = """
import os, sys, time
from mpisim.comm import job
from mpisim.core.errors import InputError
end = sys.argv[1]
job.WATCH_SECONDS, job.ABORT_SECONDS = 0.1 if end == "works on" else 1e6, 1
def body(comm):
    def work():
        if comm.rank == 0:
            os.closerange(0, 1024)
            if end == "raises":
                raise InputError("raised")
            time.sleep(1e6 * (end == "works on"))
        elif end == "raises":
            comm.Barrier()
    job.all_or_none(comm, work)
    return 0
sys.exit(job.run_job(body, dict))
"""


@needs_mpirun
@pytest.mark.parametrize("end", ["works on", "returns", "raises"])
def test_a_rank_without_descriptors_ends_the_job(end, tmp_path):
    """MPI would wait for it for ever, in an exchange, in MPI_Finalize or in MPI_Abort."""
    (tmp_path / "closing.py").write_text(CLOSING)
    assert mpirun(3, str(tmp_path / "closing.py"), end, code=None).returncode != 0


CTRL_C = b"\x03"
AGAIN_SECONDS = 60.0  # Open MPI 5's mpirun itself may hang; it ends at the third Ctrl-C


def at_a_terminal(command: list[str], ready: Path) -> str:
    """What a terminal shows of a command that Ctrl-C ends once there is a file ``ready``.

    It is pressed again where the command goes on, as a user would.
    """
    # by a shell, which stays while mpirun goes, as at a prompt
    shell = ["/bin/sh", "-c", f"trap : INT; {shlex.join(command)}; sleep 1"]
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(ROOT)
        os.execve(shell[0], shell, environment())
    shown, start, due = b"", time.monotonic(), 0.0
    try:
        while (now := time.monotonic()) < start + HANG_SECONDS:
            if now > due and ready.exists():
                os.write(terminal, CTRL_C)
                due = now + AGAIN_SECONDS
            if select.select([terminal], [], [], 0.1)[0]:
                try:
                    shown += os.read(terminal, 1 << 16)
                except OSError:  # all that had the terminal have ended
                    return shown.decode()
    finally:
        os.close(terminal)
        os.waitpid(child, 0)
    raise AssertionError(f"no end within {HANG_SECONDS:g} s: {shown.decode()}")


@needs_mpirun
def test_a_run_that_is_stopped_says_how_to_go_on(tmp_path, capfd):
    log = tmp_path / "log.h5"
    run = [*SAMPLE, "--workers", "2", "--out", str(log)]
    command = ["mpirun", "-n", "2", sys.executable, "-m", "mpisim", *run]
    command += ["--set", "run.rounds=100000000"]
    shown = at_a_terminal(command, Path(f"{log}.ckpt.old"))
    lines = [line for line in shown.splitlines() if "mpisim: " in line]
    assert len(lines) == 1 and "Traceback" not in shown, shown
    result = re.search(
        r"mpisim: stopped by Ctrl-C at round (\d+)( or later)?; log (.*); --", lines[0]
    )
    assert result and result[3] == str(log) and lines[0].endswith("--resume continues"), shown
    last = int(result[1])
    rounds = columns(log)["round"]
    if not result[2]:  # mpirun left it the time to end
        assert rounds[-1] == last
    assert main([*run, "--resume", "--set", f"run.rounds={last + 1000}"]) == 0
    assert columns(log)["round"].tolist() == list(range(last + 1001))
    assert (columns(log)["loss"][: len(rounds)] > 0).all()
