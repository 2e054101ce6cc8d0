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

import pytest

from mpisim.cli import main
from mpisim.compressors import COMPRESSORS
from mpisim.methods.estimators import ESTIMATORS
from mpisim.methods.method_table import METHODS
from mpisim.problems import PROBLEMS
from tests.comm import jobs
from tests.comm.jobs import HANG_SECONDS, ROOT, environment, mpirun, needs_mpirun
from tests.comm.layouts import experiments
from tests.helpers import attributes, columns
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


RUN = ["run", "--set", "method={ name = 'gd', stepsize = 0.1 }", "--set", "run.rounds=1000"]
SAMPLE = [*RUN, "--set", "problem={ name = 'logistic', data = 'sample' }"]
TWIN = [*RUN, "--set", "problem={ name = 'logistic', data = 'twin' }"]
FAR = [*SAMPLE, "--set", "problem.name=least-squares", "--set", "method.stepsize=1e6"]
OF_CASES = {"unknown flag", "k above d", "no folder for the log"}  # the last one on rank 0
FAILURES = {  # a command, the exit code of all ranks, and what its one line says
    "few workers": ([*SAMPLE, "--workers", "2"], 2, ["2 workers on 3 worker ranks"]),
    "other data": (TWIN, 2, ["data is logistic on twin sha256:", "on rank 1 ("]),
    "other numpy": (TWIN, 2, ["numpy is", "on ranks 0, 2 (", "1.0 on rank 1"]),
    "other flags": (SAMPLE, 2, ["command line is run --set", "run.rounds=7", "on rank 1 ("]),
    "divergence": (FAR, 3, ["diverged: loss "]),
}


@needs_mpirun
def test_a_failure_is_one_line_and_the_same_code_on_all_ranks(tmp_path):
    """One job of 3 ranks has all of them; only what diverges leaves a log."""
    prepare(tmp_path)
    for shift in (0, 1):
        (tmp_path / str(shift)).mkdir()
        rows = (f"{(-1) ** i} {i + 1}:{i + shift}\n" for i in range(12))
        (tmp_path / str(shift) / "twin").write_text("".join(rows))
    failures = {name: (words, 2, said) for name, words, said in CASES if name in OF_CASES}
    for name, (words, code, said) in FAILURES.items():
        failures[name] = [*words, "--out", f"{{d}}/{name}.h5"], code, said
    commands = [
        (name, [word.replace("{d}", str(tmp_path)) for word in words])
        for name, (words, _, _) in failures.items()
    ]
    job = mpirun(3, "-m", "tests.comm.commands", str(tmp_path), json.dumps(commands))
    parts = re.split(r"^== (.*?) ([0-9 ]+)\n", job.stderr, flags=re.M)
    assert parts[1::3] == [*failures]
    for name, codes, text in zip(parts[1::3], parts[2::3], parts[:-1:3], strict=True):
        _, code, said = failures[name]
        [line] = [line for line in text.splitlines() if line.startswith("mpisim: ")]
        assert "Traceback" not in text and all(one in line for one in said), f"{name}: {text}"
        assert codes.split() == [str(code)] * 3, name
    logs = {name for name in FAILURES if (tmp_path / f"{name}.h5").exists()}
    assert logs == {"divergence"}
    far = tmp_path / "divergence.h5"
    assert attributes(far)["status"] == "diverged" and columns(far)["round"].size > 1


@needs_mpirun
def test_bad_data_on_a_rank_ends_the_job(tmp_path):
    """The rank that reads the row aborts, and so no other command can be in this job."""
    prepare(tmp_path)
    [arguments] = [arguments for name, arguments, _ in CASES if name == "no colon"]
    arguments = [a.replace("{d}", str(tmp_path)) for a in arguments]
    job = mpirun(2, "-m", "mpisim", *arguments, code=2)
    lines = [line for line in job.stderr.splitlines() if line.startswith("mpisim: ")]
    assert len(lines) == 1 and "no-colon:2: '2' has no colon" in lines[0]


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
    assert mpirun(2, str(tmp_path / "closing.py"), end, code=None).returncode != 0


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
    run = [*SAMPLE, "--set", "run.checkpoint_seconds=1", "--workers", "2", "--out", str(log)]
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
