"""Sweeps side by side that are killed or stopped at a random moment, and gone on with."""

import dataclasses
import functools
import os
import random
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import psutil
import tomli_w
from mpi4py import MPI

from mpisim.runs.sweep import executor, grid
from tests.resumes import differences
from tests.trials.job import EXPERIMENTS, start_job, wait_for, what_is_left

FAULTS = ("kill a rank", "kill the launcher", "Ctrl-C")
SEEDS = [1, 2, 3, 4]
LATEST = 6.0  # seconds after the start


@dataclasses.dataclass(frozen=True)
class Trial:
    """A sweep of one experiment over seeds.

    ranks : under mpirun; 0: in two processes, with --jobs
    fault, moment : what happens, seconds after the start
    which : of the processes that run points
    """

    experiment: str
    ranks: int
    fault: str
    moment: float
    which: int

    def tables(self) -> dict:
        """The experiment and its grid."""
        tables = EXPERIMENTS[self.experiment]
        run = tables["run"] | {"checkpoint_seconds": 0.05, "rounds": 10_000, "log_every": 10}
        return tables | {"run": run, "sweep": {"run": {"seed": SEEDS}}}


def choose(seed: int, number: int) -> Trial:
    """The trial of that number: the same for the same seed."""
    rng = random.Random(f"sweep {seed}/{number}")
    experiment, ranks = rng.choice(list(EXPERIMENTS)), rng.choice([0, 2, 3])
    fault, moment = rng.choice(FAULTS), rng.uniform(0.5, LATEST)
    return Trial(experiment, ranks, fault, moment, rng.randrange(3))


def attempt(trial: Trial) -> tuple[str, bool]:
    """What is wrong with how it goes on; whether the fault came before the end."""
    with tempfile.TemporaryDirectory() as name:
        parent, logs = Path(name), Path(name) / "logs"
        file = parent / "grid.toml"
        file.write_text(tomli_w.dumps(trial.tables()))
        words = ["-m", "mpisim", "sweep", str(file), "--out", str(logs)]
        words += [] if trial.ranks else ["--jobs", "2"]
        job = start_job(max(1, trial.ranks), parent, *words)
        time.sleep(trial.moment)
        happened = job.poll() is None
        if happened:
            _do(trial, job)
        problems = [] if wait_for(job, parent, lambda: False) else ["hangs after the fault"]
        problems += what_is_left(parent, (parent / "stderr").read_text())
        job = start_job(max(1, trial.ranks), parent, *words)
        if not wait_for(job, parent, lambda: False) or job.returncode != 0:
            output = (parent / "stderr").read_text()
            problems.append(f"does not go on, exit code {job.returncode}: {output[-500:]}")
        problems = problems or _different(trial, logs)
        extra = {path.name for path in logs.iterdir() if ".h5" not in path.name} - {"sweep.json"}
        problems += [f"files left: {sorted(extra)}"] if extra else []
        return "; ".join(problems), happened


def _do(trial: Trial, job: subprocess.Popen) -> None:
    launcher = psutil.Process(job.pid)
    if trial.fault == "Ctrl-C":
        os.kill(job.pid, signal.SIGINT)
        return
    ranks = sorted(launcher.children(recursive=True), key=lambda process: process.pid)
    ranks = [process for process in ranks if "mpisim" in process.cmdline()]
    if trial.fault == "kill a rank" and ranks:
        ranks[trial.which % len(ranks)].kill()
    else:
        launcher.kill()


def _different(trial: Trial, logs: Path) -> list[str]:
    """The logs that are not those of a sweep that nothing happened to."""
    reference = _reference(trial.experiment)
    names = sorted(path.name for path in reference.glob("*.h5"))
    if sorted(path.name for path in logs.glob("*.h5")) != names:
        return ["other logs"]
    result = {name: differences(reference / name, logs / name) for name in names}
    return [f"{name}: {what} differs" for name, what in result.items() if what]


@functools.cache
def _reference(experiment: str) -> Path:
    """The logs, written one after the other in this process."""
    folder = Path(_folder().name) / experiment.replace(" ", "-")
    _, points = grid.points(Trial(experiment, 0, "", 0.0, 0).tables(), [], "logs")
    executor.sweep(folder, points, MPI.COMM_SELF)
    return folder


@functools.cache
def _folder() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory()
