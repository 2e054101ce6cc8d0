"""What a machine runs out of: memory, of which the kernel then kills one rank, and inodes."""

import contextlib
import os
import random

from tests.trials import faults
from tests.trials.entry import EVERYWHERE, GROUPS, ON_RANK_0, Fault
from tests.trials.faults import OFTEN, Trial
from tests.trials.job import EXPERIMENTS

MEMORY, INODES = "out of memory", "use up inodes"


def choose(seed: int, number: int) -> Trial:
    """The trial of that number: the same for the same seed."""
    rng = random.Random(f"resources {seed}/{number}")
    action, ranks = rng.choice([MEMORY, INODES]), rng.choice([1, 2, 3])
    place = rng.choice(list(EVERYWHERE if action == MEMORY else ON_RANK_0 | EVERYWHERE))
    rank = rng.randrange(ranks) if action == MEMORY else 0
    call, spare = rng.randint(1, OFTEN.get(place, 1)), rng.choice([0, 0, 1, 2, 4])
    fault = Fault(action, place, call, rank, spare, "", "")
    experiment, every = rng.choice(list(EXPERIMENTS)), rng.choice([1, 1, 7])
    layout = rng.choice(["shared", "dedicated"])
    return Trial(experiment, every, ranks, layout, fault, again=rng.choice([0, 0, 1, 2]))


def attempt(trial: Trial) -> tuple[str, bool]:
    """As for `faults`; then the groups whose memory was limited are removed."""
    try:
        return faults.attempt(trial)
    finally:
        for group in GROUPS.glob("mpisim-trial-*"):
            with contextlib.suppress(OSError):  # of another trial, which has not ended
                group.rmdir()


def possible() -> str:
    """Why this cannot be tried here; empty if it can."""
    return "" if os.geteuid() == 0 else "needs root on Linux"
