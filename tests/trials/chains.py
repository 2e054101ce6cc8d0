"""A chain of starts of one command line, each killed at a random point, on other ranks each time.

Whatever is left must be resumed by the next one, and by the last to the log of an undisturbed run.
"""

import dataclasses
import random
import tempfile
import time
from pathlib import Path

import tomli_w

from tests.trials import job as jobs
from tests.trials.entry import EVERYWHERE, ON_RANK_0, Fault
from tests.trials.faults import OFTEN, unreadable

NEVER = 10**9


@dataclasses.dataclass(frozen=True)
class Link:
    """One start: its ranks and layout, and where it is killed, or after how many seconds."""

    ranks: int
    layout: str
    fault: Fault
    moment: float | None


@dataclasses.dataclass(frozen=True)
class Chain:
    """A run that is killed several times; ``again``: ranks that end it, 0: this process."""

    experiment: str
    log_every: int
    links: tuple[Link, ...]
    again: int

    def tables(self) -> dict:
        """The experiment."""
        return jobs.tables_of(self.experiment, log_every=self.log_every, checkpoint_seconds=0.02)


def choose(seed: int, number: int) -> Chain:
    """The chain of that number: the same for the same seed."""
    rng = random.Random(f"chain {seed}/{number}")
    links = []
    for _ in range(rng.choice([2, 3, 4, 6])):
        ranks, action = rng.choice([1, 1, 2, 3]), rng.choice(["kill", "kill", "kill mpirun"])
        place = rng.choice(list(ON_RANK_0 | EVERYWHERE))
        moment = rng.uniform(0, 4) if rng.random() < 0.3 else None
        call = NEVER if moment is not None else rng.randint(1, OFTEN.get(place, 1))
        rank = rng.randrange(ranks) if place in EVERYWHERE else 0
        layout = rng.choice(["shared", "dedicated"])
        links.append(Link(ranks, layout, Fault(action, place, call, rank, 0, "", ""), moment))
    experiment, every = rng.choice(list(jobs.EXPERIMENTS)), rng.choice([1, 1, 7])
    return Chain(experiment, every, tuple(links), rng.choice([0, 1, 2]))


def attempt(chain: Chain) -> tuple[str, bool]:
    """What is wrong, and whether each start was killed."""
    happened = []
    with tempfile.TemporaryDirectory() as name:
        parent, log = Path(name), Path(name) / "out" / "log.h5"
        log.parent.mkdir()
        (parent / "job.toml").write_text(tomli_w.dumps(chain.tables()))
        for number, link in enumerate(chain.links):
            code, message, in_time = _run(link, parent, log)
            happened.append(code != 0)
            problems = jobs.what_is_left(parent, message) + ([] if in_time else ["still running"])
            if log.exists():
                problems += unreadable(log, chain.experiment, chain.log_every)
            if code != 0 and link.fault.action == "kill" and jobs.errors(message):
                problems.append(f"{jobs.errors(message)}")
            if problems:
                return f"start {number + 1}: {'; '.join(problems)}", True
        name, every = chain.experiment, chain.log_every
        problem = jobs.goes_on(chain.again, parent, name, chain.tables(), log, log_every=every)
        return problem, all(happened)


def _run(link: Link, parent: Path, log: Path) -> tuple[int, str, bool]:
    """One start, until it is killed: exit code, stderr, and whether it ended in time."""
    mark = parent / "mark"
    mark.unlink(missing_ok=True)
    fault = dataclasses.replace(link.fault, folder=str(log.parent), mark=str(mark))
    words = [str(parent / "job.toml"), "--set", f"run.layout={link.layout}", "--out", str(log)]
    job = jobs.start_with(fault, link.ranks, parent, *words, "--resume")
    if link.moment is not None:
        time.sleep(link.moment)
        jobs.kill(job, fault)
        mark.touch()

    in_time = jobs.wait_for(job, parent, jobs.late_after(mark))
    return job.returncode, (parent / "stderr").read_text(), in_time
