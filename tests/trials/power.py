"""A power cut in the middle of a run, and what is left of it.

The job must notice and end with one line; what an exit code 0 has promised must be on the disk;
and everything else must be resumed, by the same command line, to the log of an undisturbed run.
"""

import dataclasses
import random
import tempfile
import time
from pathlib import Path

import tomli_w

from tests.resumes import differences
from tests.trials import job as jobs
from tests.trials.disk import Disk, possible  # noqa: F401 - of this kind of trial
from tests.trials.entry import EVERYWHERE, ON_RANK_0, Fault

OFTEN = {"gather": 300, "broadcast": 300, "row": 300, "checkpoint": 6, "journal, rows": 10}
OFTEN |= {"writing": 40, "log, whole": 6, "log, a column": 100, "writing a whole file": 20}
OFTEN |= {"naming a new file": 10, "replacing a file": 10}
NEVER = 10**9


@dataclasses.dataclass(frozen=True)
class Cut:
    """One start of the job.

    fault : where the power is cut inside of rank 0
    moment : or how many seconds after the log or the checkpoint is there; None: inside
    """

    ranks: int
    fault: Fault
    moment: float | None


@dataclasses.dataclass(frozen=True)
class Trial:
    """A run that loses power once or several times; ``again``: ranks that resume it at last."""

    experiment: str
    log_every: int
    cuts: tuple[Cut, ...]
    again: int
    seed: str

    def tables(self) -> dict:
        """The experiment."""
        return jobs.tables_of(self.experiment, log_every=self.log_every, checkpoint_seconds=0.05)


def choose(seed: int, number: int) -> Trial:
    """The trial of that number: the same for the same seed."""
    text = f"power {seed}/{number}"
    rng = random.Random(text)
    cuts = []
    for _ in range(rng.choice([1, 1, 2, 3])):
        place = rng.choice(list(ON_RANK_0 | EVERYWHERE))
        moment = rng.uniform(0, 0.7) if rng.random() < 0.5 else None
        call = NEVER if moment is not None else rng.randint(1, OFTEN.get(place, 1))
        fault = Fault("cut power", place, call, 0, 0, "", "")
        cuts.append(Cut(rng.choice([1, 1, 2]), fault, moment))
    experiment, every = rng.choice(list(jobs.EXPERIMENTS)), rng.choice([1, 1, 7])
    return Trial(experiment, every, tuple(cuts), rng.choice([1, 1, 2]), text)


def attempt(trial: Trial) -> tuple[str, bool]:
    """What is wrong, and whether the power was cut during a run each time."""
    rng, happened = random.Random(trial.seed), []
    with tempfile.TemporaryDirectory() as name, Disk(Path(name), rng) as disk:
        parent, log = Path(name), disk.folder / "logs" / "log.h5"
        (parent / "job.toml").write_text(tomli_w.dumps(trial.tables()))
        for cut in trial.cuts:
            code, message, in_time = _run(cut, parent, log, disk)
            disk.power_up()
            happened.append(code != 0)
            problems = jobs.what_is_left(parent, message) + _broken_promises(
                trial, log, code, message
            )
            if not in_time:
                problems.append("still running after the cut")
            if problems:
                return "; ".join(problems), True
        name, every = trial.experiment, trial.log_every
        problem = jobs.goes_on(trial.again, parent, name, trial.tables(), log, log_every=every)
        return problem, all(happened)


def _run(cut: Cut, parent: Path, log: Path, disk: Disk) -> tuple[int, str, bool]:
    """Run until the power is gone: exit code, stderr, and whether the job ended in time.

    Where the job ends before, the power is cut at that very moment.
    """
    mark = parent / "mark"
    mark.unlink(missing_ok=True)
    fault = dataclasses.replace(cut.fault, folder=str(disk.folder), mark=str(mark))
    before = _written(log)
    words = str(parent / "job.toml"), "--out", str(log), "--resume"
    job = jobs.start_with(fault, cut.ranks, parent, *words)
    if cut.moment is not None:
        while job.poll() is None and _written(log) == before:
            time.sleep(0.005)
        end = time.monotonic() + cut.moment
        while job.poll() is None and time.monotonic() < end:
            time.sleep(0.005)
        mark.touch()
        disk.cut()
    in_time = jobs.wait_for(job, parent, jobs.late_after(mark))
    if not mark.exists():
        disk.cut()
    return job.returncode, (parent / "stderr").read_text(), in_time


def _written(log: Path) -> list[tuple[str, int]]:
    """What tells that a run has begun to write."""
    try:
        return sorted((path.name, path.stat().st_ino) for path in log.parent.iterdir())
    except OSError:
        return []


def _broken_promises(trial: Trial, log: Path, code: int, message: str) -> list[str]:
    if code != 0:
        lines = jobs.errors(message)
        return [] if len(lines) == 1 else [f"exit code {code} with {len(lines)} lines: {message}"]
    try:
        wrong = differences(jobs.reference(trial.experiment, log_every=trial.log_every), log)
    except (OSError, KeyError) as error:
        return [f"exit code 0, but {error}"]
    return [f"exit code 0, but {one} differs" for one in wrong]
