"""Two commands for one log: with locks the second is refused, without them one of both stops.

Whichever ends with exit code 0 and has written last, the log is its log, whole.
"""

import random
import subprocess
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import h5py
import tomli_w

from tests.comm.jobs import HANG_SECONDS
from tests.trials import job as jobs
from tests.trials.entry import NEVER, Fault

ROUNDS = 4000


class Command(NamedTuple):
    """One of the two: its seed, its flag ("", "--force" or "--resume") and its ranks."""

    seed: int
    flag: str
    ranks: int


class Race(NamedTuple):
    """Two commands, the second one ``delay`` seconds later; ``locks``: of the file system."""

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
        started = [_start(race, 0, parent, log)]
        time.sleep(race.delay)
        started.append(_start(race, 1, parent, log))
        ends: dict[int, float] = {}
        while len(ends) < 2 and jobs.idle_seconds(parent) < HANG_SECONDS:
            ends |= {i: time.time() for i in {0, 1} - ends.keys() if started[i].poll() is not None}
            time.sleep(0.01)
        if len(ends) < 2:
            return "still running", True
        problems, good, busy = [], set(), set()
        for number, job in enumerate(started):
            output = (parent / f"stderr{number}").read_text()
            problems += jobs.what_is_left(parent, output)
            good |= {number} if job.returncode == 0 else set()
            busy |= {number} if "there is nothing to do" not in output else set()
            lines = len(jobs.errors(output))
            if job.returncode not in (0, 1, 2) or (job.returncode and lines != 1):
                problems.append(f"exit code {job.returncode}: {output}")
        seeds = {race.commands[number].seed for number in good}
        if not any(jobs.is_right(log, race.experiment, rounds=ROUNDS, seed=s) for s in seeds):
            problems.append(f"the log is not one of {sorted(good)}")
        elif good & busy == {0, 1}:
            problems += _replaced_before_its_end(log, race, ends)
        extra = sorted(p.name for p in log.parent.iterdir() if not p.name.startswith("log.h5"))
        problems += [f"files left: {extra}"] if extra else []
        return "; ".join(problems), len(good) < 2


def _start(race: Race, number: int, parent: Path, log: Path) -> subprocess.Popen:
    file, command = parent / f"{number}.toml", race.commands[number]
    run = {"rounds": ROUNDS, "seed": command.seed, "checkpoint_seconds": 0.05}
    file.write_text(tomli_w.dumps(jobs.tables_of(race.experiment, **run)))
    mark = str(parent / f"mark{number}")
    fault = Fault("no locks", "start", NEVER if race.locks else 1, mark=mark)
    words = [str(file), "--out", str(log), *([command.flag] if command.flag else [])]
    return jobs.start_with(fault, command.ranks, parent, *words, name=f"stderr{number}")


def _replaced_before_its_end(log: Path, race: Race, ends: dict[int, float]) -> list[str]:
    """What is wrong if a job ended with exit code 0, although its log was another's by then."""
    with h5py.File(log) as file:
        last = int("1.toml" in file.attrs["command"])
        start = datetime.fromisoformat(file.attrs["start"]).timestamp()
    resumed = race.commands[last].flag == "--resume"  # keeps the start of the log before
    if resumed or ends[1 - last] < start + 2:
        return []
    return [f"exit code 0 of {1 - last}, but its log had been replaced before"]
