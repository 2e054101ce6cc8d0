"""What happens to a job when its input is bad; tests/trials has jobs whose ranks die."""

from __future__ import annotations

import signal
import subprocess
import sys

import h5py
import pytest

from tests.comm import malformed
from tests.comm.jobs import HANG_SECONDS, ROOT, environment, mpirun, needs_mpirun
from tests.malformed import CASES

SOME = [
    "no colon",  # seen by the rank that reads the data
    "unknown flag",  # before MPI starts
    "k above d",  # on all ranks
    "no folder for the log",  # on rank 0
]


@needs_mpirun
@pytest.mark.parametrize("name", SOME)
def test_bad_input_on_three_ranks(name):
    [(_, arguments, said)] = [case for case in CASES if case[0] == name]
    assert malformed.trial(3, arguments, said) == ""


@needs_mpirun
def test_more_ranks_than_workers(tmp_path):
    job = mpirun(
        3, "-m", "mpisim", "run", *RUN, "--workers", "2", "--out", str(tmp_path / "x.h5"), cwd=ROOT
    )
    assert job.returncode == 2
    assert "problem.workers: 2 workers on 3 worker ranks" in job.stderr


RUN = [
    *("--set", "problem={ name = 'logistic', data = 'sample' }"),
    *("--set", "method={ name = 'gd', stepsize = 0.1 }"),
    *("--set", "run.rounds=1000000", "--set", "run.checkpoint_seconds=1"),
]


@needs_mpirun
def test_ranks_that_are_not_alike_do_not_start(tmp_path):
    for folder, shift in (("0", 0), ("1", 1)):
        (tmp_path / folder).mkdir()
        rows = (f"{(-1) ** i} {i + 1}:{i + shift}" for i in range(12))
        (tmp_path / folder / "twin").write_text("\n".join(rows) + "\n")
    job = mpirun(3, "-m", "tests.comm.unlike", str(tmp_path), cwd=ROOT)
    assert job.returncode == 0, job.stderr
    lines = [line for line in job.stderr.splitlines() if line.startswith("mpisim: ")]
    assert len(lines) == 2 and not (tmp_path / "x.h5").exists()
    data, versions = lines
    assert "data is logistic on twin sha256:" in data and "on rank 1 (" in data
    assert "numpy is" in versions and "on ranks 0, 2 (" in versions
    assert "1.0 on rank 1" in versions


@needs_mpirun
def test_divergence_is_exit_code_3(tmp_path):
    log = tmp_path / "x.h5"
    settings = ["--set", "problem.name=least-squares", "--set", "method.stepsize=1e6"]
    job = mpirun(2, "-m", "mpisim", "run", *RUN, *settings, "--out", str(log), cwd=ROOT)
    assert job.returncode == 3, job.stderr
    assert job.stderr.count("mpisim: diverged") == 1
    with h5py.File(log) as file:
        assert file.attrs["status"] == "diverged" and file["rounds/round"].size > 1


CRASH = """
import ctypes
from mpisim.runs.host import guarded
guarded(lambda comm: ctypes.string_at(0))
"""


def test_a_crash_ends_a_rank_without_a_handler_that_may_hang():
    """Open MPI's prints "Process received signal" and allocates memory."""
    job = subprocess.run(
        [sys.executable, "-c", CRASH],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )
    assert job.returncode == -signal.SIGSEGV
    assert "Fatal Python error: Segmentation fault" in job.stderr
    assert "string_at" in job.stderr and "Process received signal" not in job.stderr
