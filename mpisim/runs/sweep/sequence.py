"""Runs points one after the other, each on as many ranks of the job as it asks for."""

from __future__ import annotations

from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from mpisim.comm.subset import on_subset
from mpisim.runs.cache import ProblemCache
from mpisim.runs.progress import duration
from mpisim.runs.status import STOPPED
from mpisim.runs.sweep.board import LONG
from mpisim.runs.sweep.execute import Sweep
from mpisim.runs.sweep.lines import PointLines
from mpisim.runs.sweep.points import write_summary

if TYPE_CHECKING:
    from mpi4py import MPI


def run_in_sequence(sweep: Sweep, ranks: int, comm: MPI.Intracomm, lines: PointLines) -> None:
    """Run the points that have no status yet. Collective.

    A point that asks for no ranks has ``ranks`` of them; the others sleep. A signal ends all with
    the current run. Rank 0 keeps the summary up to date.
    """
    kept, timer = _Kept(), _Timer(sum(not point.status for point in sweep.points))
    for number, point in enumerate(sweep.points):
        if point.status:
            continue
        if comm.rank == 0:
            lines.begins(number, timer.left())
        sweep.signals.go_on = sweep.left()
        own = point.ranks or ranks
        work = partial(sweep.execute, point, kept.on(own), expected=timer.tell)
        point.end(*on_subset(comm, own, work))
        timer.ran += 1
        if comm.rank == 0:
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
    """The time left, if the waiting points take as long as those that ran."""

    def __init__(self, waiting: int):
        self.waiting, self.ran, self.start = waiting, 0, monotonic()
        self._told = False

    def tell(self, seconds: float) -> None:
        """Say how long all will take, once, when the first one has rehearsed."""
        whole = seconds * (self.waiting - self.ran)
        if not self._told and whole > LONG:
            print(f"about {duration(whole)} for {self.waiting - self.ran} runs", flush=True)
        self._told = True

    def left(self) -> str:
        if not self.ran:
            return ""
        seconds = (monotonic() - self.start) / self.ran * (self.waiting - self.ran)
        return f", about {duration(seconds)} left"
