"""What a group of ranks does while points run side by side: take one after the other."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from mpisim.comm.job import on_first
from mpisim.comm.side_channel import side_of
from mpisim.runs.cache import ProblemCache
from mpisim.runs.status import STOPPED
from mpisim.runs.sweep.claims import Claims
from mpisim.runs.sweep.execute import Sweep
from mpisim.runs.sweep.order import Work, choose

if TYPE_CHECKING:
    from mpi4py import MPI

LOOK_SECONDS = 0.25


def run_group(
    sweep: Sweep, works: Sequence[Work], claims: Claims, groups: int, comm: MPI.Intracomm
) -> None:
    """Run points of ``works`` until none is left, or the sweep stops. Collective over the group.

    groups : that run points at the same time
    comm : the group's ranks
    """
    cache, loaded = ProblemCache(), None
    while True:
        work = on_first(side_of(comm), lambda: _take(works, claims, loaded, groups))  # noqa: B023
        if work is None:
            return
        point, loaded = sweep.points[work.number], work.problem
        tell = partial(claims.expect, work.number)
        how = {"quiet": True, "side_by_side": groups, "expected": tell}
        outcome = sweep.execute(point, cache, comm, **how)
        if comm.rank == 0:
            claims.end(work.number, outcome)
        if outcome.status in STOPPED:
            if comm.rank == 0:
                claims.stop(outcome.status)
            return


def _take(works: Sequence[Work], claims: Claims, loaded: Hashable, groups: int) -> Work | None:
    """Claim the next point."""
    taken = claims.taken()
    while not claims.stopped():
        work = choose(works, taken, loaded, groups)
        if work is None or claims.take(work.number):
            return work
        taken.add(work.number)
    return None


class Watch:
    """Looks a few times a second whether another group was stopped by a signal.

    A process whose ``parent``, mpirun say, has gone stops as after SIGTERM. Runs on one rank
    exchange nothing, so MPI would not notice it.

    claims : of the sweep
    also : is called each time; returns a signal, too
    """

    def __init__(self, claims: Claims, also: Callable[[], int], parent: int):
        self.claims, self.also, self.parent = claims, also, parent
        self._due = 0.0

    def __call__(self) -> int:
        """The signal; 0: none."""
        now = monotonic()
        if now < self._due:
            return 0
        self._due = now + LOOK_SECONDS
        if os.getppid() != self.parent:
            return signal.SIGTERM
        return self.also() or self.claims.stopped()
