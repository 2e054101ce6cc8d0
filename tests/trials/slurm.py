"""A run under Slurm that is queued again, and goes on.

The script of `mpisim new job` on 2 virtual nodes with 2 ranks each. The job is queued again once by
hand (`scontrol requeue`), and once by itself, when it gets SIGTERM before its time is over. Each
time it must go on from its checkpoint, to the log of an undisturbed run.
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import tomli_w

from mpisim.core.errors import InputError
from mpisim.runs.log.reader import read
from mpisim.testing.new import create_job
from tests.comm.jobs import HANG_SECONDS, ROOT, environment
from tests.helpers import run_tables
from tests.resumes import differences
from tests.trials.cluster import Cluster, possible  # noqa: F401 - of this kind of trial
from tests.trials.job import EXPERIMENTS

TABLES = EXPERIMENTS["marina randk"]
PATIENCE = HANG_SECONDS  # for each step
SHAPE = ("--nodes=2", "--ntasks-per-node=2")
SLOW = {"rounds": 2_000_000, "log_every": 500, "checkpoint_seconds": 0.2}
# How a job is made to start again, and the words of sbatch that make it do so by itself: SIGTERM
# 30 seconds after the start.
CASES = {
    "scontrol requeue": [],
    "SIGTERM before the time is over": ["--time=1", "--signal=TERM@30"],
}


@dataclasses.dataclass(frozen=True)
class Trial:
    """One way to start again."""

    case: str


def choose(seed: int, number: int) -> Trial:
    """One after the other."""
    return Trial(list(CASES)[number % len(CASES)])


def attempt(trial: Trial) -> tuple[str, bool]:
    """What is wrong with a job that starts twice; it always does."""
    os.environ.update(environment())
    with tempfile.TemporaryDirectory() as name, Cluster(Path(name) / "slurm", 2, 2) as slurm:
        return _requeue(slurm, Path(name) / "job", CASES[trial.case]), True


def _requeue(cluster: Cluster, folder: Path, words: list[str]) -> str:
    """What is wrong; empty if nothing is."""
    folder.mkdir()
    tables = TABLES | {"run": TABLES["run"] | SLOW}
    experiment, log, message = (folder / name for name in ("experiment.toml", "log.h5", "out"))
    experiment.write_text(tomli_w.dumps(tables))
    command = ["sbatch", "--parsable", f"--chdir={ROOT}", f"--output={message}", *SHAPE, *words]
    script = str(create_job(folder / "job.sbatch"))
    run = ["run", str(experiment), "--out", str(log)]
    job = cluster.command(*command, script, *run).strip()

    if not words:
        if not _until(Path(f"{log}.ckpt").exists):
            return f"does not start: {_text(message)}"
        cluster.command("scontrol", "requeue", job)
    if not _until(lambda: int(_field(cluster, job, "Restarts")) > 0):
        return f"is not queued again: {_text(message)}"
    if not _until(lambda: int(_attribute(log, "resumed") or 0) > 0):
        return f"does not go on: {_text(message)}"
    cluster.command("scancel", job)
    if not _until(lambda: _attribute(log, "status") == "terminated"):
        return f"does not end at SIGTERM: {_text(message)}"
    return _compare(folder, log)


def _compare(folder: Path, log: Path) -> str:
    """Whether the log is the beginning of that of a run in this process."""
    rounds = int(read(log).columns["round"][-1])
    tables = TABLES | {"run": TABLES["run"] | SLOW | {"rounds": rounds}}
    alone = folder / "alone.h5"
    run_tables(tables, alone)
    different = [name for name in differences(alone, log) if name != "stopped_by"]
    return f"{', '.join(different)} differ" if different else ""


def _field(cluster: Cluster, job: str, name: str) -> str:
    words = cluster.command("scontrol", "show", "job", "-o", job).split()
    return next(word.partition("=")[2] for word in words if word.startswith(f"{name}="))


def _attribute(log: Path, name: str) -> str:
    """Of a log that may be written at this moment."""
    try:
        return str(read(log).attrs.get(name, ""))
    except InputError:
        return ""


def _text(message: Path) -> str:
    return message.read_text()[-2000:] if message.exists() else "nothing was printed"


def _until(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.2)
    return False
