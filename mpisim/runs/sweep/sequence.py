"""Runs points one after the other, each on as many ranks of the job as it asks for."""

from __future__ import annotations

from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from mpisim.comm.subset import on_subset
from mpisim.runs.cache import ProblemCache
from mpisim.runs.status import STOPPED
from mpisim.runs.sweep.board import LONG
from mpisim.runs.sweep.execute import Sweep
from mpisim.runs.sweep.lines import PointLines, forecast
from mpisim.runs.sweep.pace import Pace
from mpisim.runs.sweep.points import write_summary
from mpisim.runs.sweep.sizes import works_of

if TYPE_CHECKING:
    from mpi4py import MPI


def run_in_sequence(sweep: Sweep, ranks: int, comm: MPI.Intracomm, lines: PointLines) -> None:
    """Run the points that have no status yet. Collective.

    A point that asks for no ranks has ``ranks`` of them; the others sleep. A signal ends all with
    the current run. Rank 0 keeps the summary up to date.
    """
    kept, timer = _Kept(), None
    if comm.rank == 0:
        timer = _Timer(sweep)
    for number, point in enumerate(sweep.points):
        if point.status:
            continue
        if timer is not None:
            lines.begins(number, timer.left())
        sweep.signals.go_on = sweep.left()
        own = point.ranks or ranks
        tell = None if timer is None else partial(timer.tell, number)
        work = partial(sweep.execute, point, kept.on(own), expected=tell)
        point.end(*on_subset(comm, own, work))
        if timer is not None:
            timer.ran(number, point.seconds or 0.0)
            lines.did_not_run(number)
            write_summary(sweep.folder, sweep.points)
        if point.status in STOPPED:
            break


class _Kept:
    """What the ranks that run a point keep loaded for the next one.

    A rank that slept would keep what others have replaced. So a change of ranks starts anew.
    """

    def __init__(self) -> None:
        self.ranks, self.cache = 0, ProblemCache()

    def on(self, ranks: int) -> ProblemCache:
        """The cache for the next point, on so many ranks."""
        if ranks != self.ranks:
            self.ranks, self.cache = ranks, ProblemCache()
        return self.cache


class _Timer:
    """The time left, told before the first point and with each."""

    def __init__(self, sweep: Sweep):
        waiting = [n for n, point in enumerate(sweep.points) if not point.status]
        self._sizes = {work.number: work.size for work in works_of(sweep.points, waiting)}
        self._pace, self._start = Pace(self._sizes, sweep.group.later), monotonic()
        self._told = False

    def tell(self, number: int, seconds: float) -> None:
        """Say how long all will take, once, when the first point has rehearsed."""
        whole = seconds * sum(self._sizes.values()) / self._sizes[number]
        if not self._told and whole > LONG:
            print(forecast(whole, len(self._sizes)), flush=True)
        self._told = True

    def ran(self, number: int, seconds: float) -> None:
        """A point has ended."""
        self._pace.ran(number, seconds)

    def left(self) -> str:
        """The time left as text."""
        return self._pace.left(monotonic() - self._start)
