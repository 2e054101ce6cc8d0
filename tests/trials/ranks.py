"""Runs on 7 and on 64 ranks, with ``run.debug``: the log of one process."""

import dataclasses
import random
import tempfile
from pathlib import Path

import tomli_w

from tests.comm.jobs import ROOT, mpirun
from tests.helpers import run_tables
from tests.resumes import differences, experiments

EXPERIMENTS = dict(experiments())


@dataclasses.dataclass(frozen=True)
class Trial:
    """An experiment with as many workers as fit, and some more."""

    experiment: str
    ranks: int
    layout: str
    more: int

    @property
    def workers(self) -> int:
        """At least one on each rank that holds some."""
        return self.ranks - (self.layout == "dedicated") + self.more

    def tables(self) -> dict:
        """The experiment."""
        tables = EXPERIMENTS[self.experiment]
        run = {"layout": self.layout, "debug": True}
        problem = {"workers": self.workers}
        if self.experiment.startswith("compressed-scaffnew"):  # groups that divide the workers
            problem["workers"] = 3 * -(-self.workers // 3)
        return tables | {"problem": tables["problem"] | problem, "run": tables["run"] | run}


def choose(seed: int, number: int) -> Trial:
    """The trial of that number: the same for the same seed; every third one has 64 ranks."""
    rng = random.Random(f"ranks {seed}/{number}")
    ranks = 64 if number % 3 == 2 else 7
    layout = rng.choice(["shared", "dedicated"])
    return Trial(rng.choice(list(EXPERIMENTS)), ranks, layout, rng.choice([0, 0, 1, 5]))


def attempt(trial: Trial) -> tuple[str, bool]:
    """What is wrong; it always happens."""
    with tempfile.TemporaryDirectory() as name:
        parent, log, other = Path(name), Path(name) / "log.h5", Path(name) / "other.h5"
        (parent / "job.toml").write_text(tomli_w.dumps(trial.tables()))
        words = "-m", "mpisim", "run", str(parent / "job.toml"), "--out", str(log)
        job = mpirun(trial.ranks, *words, cwd=ROOT, timeout=None)
        if job.returncode != 0:
            return f"exit code {job.returncode}: {job.stderr[-2000:]}", True
        run_tables(trial.tables(), other)
        return "; ".join(f"{one} differs" for one in differences(other, log)), True
