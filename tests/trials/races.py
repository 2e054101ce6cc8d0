"""Two commands for one log: with locks the second is refused, without them one of both stops.

Whichever ends with exit code 0 and has written last, the log is its log, whole.
"""

import dataclasses
import random
import subprocess
import tempfile
import time
from datetime import datetime
from pathlib import Path

import h5py
import tomli_w

from tests.resumes import differences
from tests.trials import job as jobs
from tests.trials.entry import Fault

ROUNDS = 4000
NEVER = 10**9


@dataclasses.dataclass(frozen=True)
class Command:
    """One of the two: its seed, its flag ("", "--force" or "--resume") and its ranks."""

    seed: int
    flag: str
    ranks: int


@dataclasses.dataclass(frozen=True)
class Race:
    """Two commands, the second one ``delay`` seconds behind; ``locks``: of the file system."""

    experiment: str
    commands: tuple[Command, Command]
    delay: float
    locks: bool


def choose(seed: int, number: int) -> Race:
    """The race of that number: the same for the same seed."""
    rng = random.Random(f"race {seed}/{number}")
    flags = ["", "--force", "--force", "--resume"]
    one, two = (
        Command(rng.choice([1, 2]), rng.choice(flags), rng.choice([1, 1, 2])) for _ in range(2)
    )
    experiment = rng.choice(list(jobs.EXPERIMENTS))
    return Race(experiment, (one, two), rng.uniform(0, 2), rng.random() < 0.5)


def attempt(race: Race) -> tuple[str, bool]:
    """What is wrong, and whether one of the two was refused or stopped."""
    with tempfile.TemporaryDirectory() as name:
        parent, log = Path(name), Path(name) / "out" / "log.h5"
        started = []
        for number, command in enumerate(race.commands):
            started.append(_start(race, command, number, parent, log))
            time.sleep(race.delay if number == 0 else 0)
        ends = _ends(started, parent)
        if len(ends) < len(started):
            return "still running", True
        problems, idle = [], set()
        for number, job in enumerate(started):
            output = (parent / f"stderr{number}").read_text()
            idle |= {number} if "there is nothing to do" in output else set()
            problems += jobs.what_is_left(parent, output)
            if job.returncode not in (0, 1, 2) or (
                job.returncode and len(jobs.errors(output)) != 1
            ):
                problems.append(f"exit code {job.returncode}: {output}")
        good = {number for number, job in enumerate(started) if job.returncode == 0}
        if not any(_is_of(race, race.commands[number], log) for number in good):
            problems.append(f"the log is not one of {sorted(good)}")
        elif late := _replaced_before_its_end(log, race, good - idle, ends):
            problems.append(late)
        extra = sorted(p.name for p in log.parent.iterdir() if not p.name.startswith("log.h5"))
        if extra:
            problems.append(f"files left: {extra}")
        return "; ".join(problems), len(good) < 2


def _start(race: Race, command: Command, number: int, parent: Path, log: Path) -> subprocess.Popen:
    file, mark = parent / f"{number}.toml", str(parent / f"mark{number}")
    file.write_text(tomli_w.dumps(_tables(race, command)))
    fault = Fault("no locks", "start", NEVER if race.locks else 1, 0, 0, "", mark)
    words = [str(file), "--out", str(log), *([command.flag] if command.flag else [])]
    return jobs.start_with(fault, command.ranks, parent, *words, name=f"stderr{number}")


def _ends(started: list[subprocess.Popen], parent: Path) -> dict[int, float]:
    """When each job has ended, as far as they do."""
    ends: dict[int, float] = {}
    while len(ends) < len(started) and jobs.idle_seconds(parent) < jobs.STUCK:
        for number, job in enumerate(started):
            if job.poll() is not None:
                ends.setdefault(number, time.time())
        time.sleep(0.01)
    return ends


def _replaced_before_its_end(log: Path, race: Race, good: set[int], ends: dict[int, float]) -> str:
    """What is wrong if a job ended with exit code 0, although its log was another's by then."""
    with h5py.File(log) as file:
        last = int("1.toml" in file.attrs["command"])
        start = datetime.fromisoformat(file.attrs["start"]).timestamp()
    resumed = race.commands[last].flag == "--resume"  # keeps the start of the log before
    if resumed or len(good) < 2 or ends[1 - last] < start + 2:
        return ""
    return f"exit code 0 of {1 - last}, but its log had been replaced before"


def _tables(race: Race, command: Command) -> dict:
    run = {"rounds": ROUNDS, "seed": command.seed, "checkpoint_seconds": 0.05}
    return jobs.tables_of(race.experiment, **run)


def _is_of(race: Race, command: Command, log: Path) -> bool:
    expected = jobs.reference(race.experiment, rounds=ROUNDS, seed=command.seed)
    try:
        return not differences(expected, log)
    except (OSError, KeyError):
        return False
