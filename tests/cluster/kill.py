"""python -m tests.cluster.kill TRIALS: kill -9 a random rank at a random moment, and look."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np
import psutil

from tests.cluster.jobs import ROOT, start

BROKEN_PLUGIN = """
from mpi4py import MPI
from mpisim.problems.base import PROBLEMS, problem

@problem("broken")
class Broken(PROBLEMS["logistic"]):
    def gradients(self, x):
        self.asked = getattr(self, "asked", 0) + 1
        if MPI.COMM_WORLD.rank == {rank}:
            raise RuntimeError("one bad day")
        return super().gradients(x)

    def losses_and_gradients(self, x):
        return self.losses(x), self.gradients(x)
"""

JOB = [
    *(
        "run",
        "--set",
        "problem={ name = 'logistic', data = 'sample' }",
        "--set",
        "run.rounds=100000000",
    ),
    *(
        "--set",
        "method={ name = 'marina', stepsize = 0.1 }",
        "--set",
        "compressor={ name = 'randk', k = 5 }",
    ),
    *("--set", "run.checkpoint_seconds=0.5"),
]


def ranks_of(job: int) -> list[psutil.Process]:
    """The Python processes of an mpirun job."""
    try:
        children = psutil.Process(job).children(recursive=True)
        return [p for p in children if "mpisim" in p.cmdline()]
    except psutil.NoSuchProcess:
        return []


def check_log(log: Path, status: str | None = None) -> int:
    """Rows of a log, opened with plain h5py: all columns there, equally long, in order."""
    with h5py.File(log, "r") as file:
        lengths = {c.size for c in file["rounds"].values()}
        rounds = file["rounds/round"][:]
        assert status is None or file.attrs["status"] == status, file.attrs["status"]
    assert len(lengths) == 1, lengths
    assert np.array_equal(rounds, np.arange(rounds.size))
    return rounds.size


def trial(ranks: int, log: Path, name: str, seconds: float) -> str:
    """Start a job, signal it after ``seconds``; what is wrong with the way it ends, or nothing."""
    job = start(
        ranks,
        "-m",
        "mpisim",
        *JOB,
        "--out",
        str(log),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(seconds)
    processes = ranks_of(job.pid)
    if name == "TERM":
        os.kill(job.pid, signal.SIGTERM)
    elif processes:
        random.choice(processes).kill()
    else:
        os.kill(job.pid, signal.SIGKILL)
    sent, written = time.monotonic(), time.time() - log.stat().st_mtime if log.exists() else 0.0
    try:
        code = job.wait(timeout=10)
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
        return "still running after 10 s"
    time.sleep(0.2)
    alive = [p.pid for p in processes if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]
    problems = []
    if code == 0:
        problems.append("exit code 0")
    if alive and time.monotonic() - sent < 10:
        psutil.wait_procs([psutil.Process(p) for p in alive], timeout=10)
        alive = [p for p in alive if psutil.pid_exists(p)]
    if alive:
        problems.append(f"processes left: {alive}")
    if log.exists():
        try:
            rows = check_log(log)
            if rows and written > 3:
                problems.append(f"the log's last {written:.1f} s are missing")
        except (OSError, KeyError, AssertionError) as error:
            problems.append(f"log: {error}")
    return "; ".join(problems)


def main() -> int:
    """Trials at random moments of the first 6 seconds."""
    failed, trials = 0, int(sys.argv[1])
    for number in range(trials):
        with tempfile.TemporaryDirectory() as folder:
            moment, ranks = random.uniform(0, 6), random.choice([1, 2, 3])
            problem = trial(ranks, Path(folder) / "log.h5", "KILL", moment)
        failed += bool(problem)
        print(f"{number}: {ranks} ranks, after {moment:.2f} s: {problem or 'ok'}", flush=True)
    print(f"{trials} kills, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
