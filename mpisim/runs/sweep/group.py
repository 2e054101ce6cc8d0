"""What a group of ranks does in a sweep: take a point, run it, next."""

from __future__ import annotations

import dataclasses
import os
import signal
import tomllib
from collections.abc import Callable, Hashable, Sequence
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from mpisim.comm.communicators import on_subset, side_of
from mpisim.comm.job import on_first, together
from mpisim.core.errors import InputError
from mpisim.core.files import Locked
from mpisim.core.terminal import report
from mpisim.runs.experiment import parse
from mpisim.runs.log.writer import lock_of
from mpisim.runs.loop import run_rounds
from mpisim.runs.record import Output
from mpisim.runs.setup import ProblemCache, Setup
from mpisim.runs.signals import STOPPED, StopSignals
from mpisim.runs.sweep.claims import Claims
from mpisim.runs.sweep.order import Work, choose, works_of
from mpisim.runs.sweep.plan import completed
from mpisim.runs.sweep.points import Group, Outcome, Point, Shard
from mpisim.runs.sweep.progress import Board, PointLines

if TYPE_CHECKING:
    from mpi4py import MPI

GO_ON = "the same command continues"
LOOK_SECONDS = 0.25


@dataclasses.dataclass(frozen=True)
class Sweep:
    """What the runs of a sweep share.

    folder : of the logs
    points : all of them, in the order of the plan; rank 0 keeps their status
    signals : that end the sweep
    command, accept : as in `Output`
    shard : the points that this sweep runs
    group : of several sweeps, this one
    """

    folder: Path
    points: Sequence[Point]
    signals: StopSignals
    command: str
    accept: bool
    shard: Shard
    group: Group
    lines: PointLines

    def works(self, with_ranks: bool | None = None) -> list[Work]:
        """The points to run that ask for ranks, or do not; None: both. None left after a signal."""
        waiting = [
            number
            for number, point in enumerate(self.points)
            if not point.status
            and self.shard.has(number)
            and with_ranks in (None, point.ranks is not None)
        ]
        return [] if self.stopped() else works_of(self.points, waiting)

    def board(self, works: Sequence[Work], claims: Claims, live: bool = True) -> Board:
        """The display of these points."""
        return Board(self.folder, works, claims, self.lines, self.group, live)

    def execute(
        self, point: Point, cache: ProblemCache, comm: MPI.Intracomm, **how: Any
    ) -> Outcome:
        """Run a point on all ranks of ``comm``; ``how``: more keys of `Output`. Collective.

        The caller holds the lock of the log.
        """
        earlier = Path(point.earlier) if point.earlier else None
        flags = {"force": True, "resume": True, "accept": self.accept} | how
        output = Output(Path(point.log), **flags, command=self.command, earlier=earlier)
        start, control = monotonic(), comm.Dup()
        try:
            config = tomllib.loads(point.config)
            setup = together(control, lambda: Setup(parse(config), comm, cache))
        except InputError as error:
            if not error.agreed:
                raise
            status, reason = "skipped", str(error)
        else:
            end = run_rounds(setup, output, self.signals)
            status, reason = end.status, ""
            if status in STOPPED and comm.rank == 0:
                report(self.signals.stopped(status, end.row["round"], output.log))
        control.Free()
        return Outcome(status, reason, monotonic() - start)

    def stopped(self) -> str:
        """The status of a run that a signal has stopped; empty if there is none."""
        return next((point.status for point in self.points if point.status in STOPPED), "")

    def report_left(self) -> None:
        """Print how many points are left, if a signal has stopped runs."""
        if status := self.stopped():
            report(self.signals.ended(status, self.left()))

    def left(self) -> str:
        """How many points are left, and how to go on with them."""
        own = [point for place, point in enumerate(self.points) if self.shard.has(place)]
        left = sum(not point.status or point.status in STOPPED for point in own)
        return f"{left} of {len(own)} points are left; {GO_ON}"


def run_points(
    sweep: Sweep,
    works: Sequence[Work],
    claims: Claims,
    groups: int,
    ranks: int,
    comm: MPI.Intracomm,
    board: Board | None = None,
) -> None:
    """Run points of ``works`` until none is left, or the sweep stops. Collective.

    groups : that run points at the same time
    ranks : of ``comm``, for a point that asks for none; the others sleep
    board : on rank 0 of a group that is alone, and prints the progress of each run
    """
    side, queue = side_of(comm), Queue(sweep, works, claims, groups)
    cache, size = ProblemCache(), 0
    while True:
        with ExitStack() as lock:
            work = on_first(side, lambda: queue.take(lock))
            if work is None:
                return
            point = sweep.points[work.number]
            if size != (point.ranks or ranks):  # a rank that slept keeps what others have replaced
                size, cache = point.ranks or ranks, ProblemCache()
            if board is not None:
                board.update()
                board.begins(work.number)
                sweep.signals.go_on = sweep.left()

            def expect(seconds: float, number: int = work.number) -> None:
                claims.expect(number, seconds)
                if board is not None:
                    board.update()

            how = {"quiet": board is None, "side_by_side": groups, "expected": expect}
            outcome = on_subset(comm, size, lambda part: sweep.execute(point, cache, part, **how))  # noqa: B023
            if comm.rank == 0:
                claims.end(work.number, outcome)
            if board is not None:
                board.update()
        if outcome.status in STOPPED:
            if comm.rank == 0:
                claims.stop(outcome.status)
            return


class Queue:
    """Takes points for a group, on its first rank.

    The claim keeps other groups of the sweep away, and the lock of the log everybody else.
    """

    def __init__(self, sweep: Sweep, works: Sequence[Work], claims: Claims, groups: int):
        self.sweep, self.works, self.claims, self.groups = sweep, works, claims, groups
        self._loaded: Hashable = None
        self._elsewhere: list[Work] = []  # what other processes are running

    def take(self, stack: ExitStack) -> Work | None:
        """The next point, with the lock of its log until ``stack`` ends; None: no more."""
        while not self.claims.stopped():
            work = choose(self.works, self.claims.taken(), self._loaded, self.groups)
            last = work is None
            if work is None:
                if not self._elsewhere:
                    return None
                work = self._elsewhere.pop(0)
            elif not self.claims.take(work.number):
                continue
            if self._lock(work, stack, last):
                self._loaded = work.problem
                return work
        return None

    def _lock(self, work: Work, stack: ExitStack, last: bool) -> bool:
        """Whether the point is to run; if it is busy it is put off, unless this is the ``last``."""
        point = self.sweep.points[work.number]
        try:
            stack.enter_context(lock_of(Path(point.log)))
        except InputError as error:
            if isinstance(error.__context__, Locked) and not last:
                self._elsewhere.append(work)
            else:
                self.claims.end(work.number, Outcome("skipped", str(error)))
            return False
        ended = completed(point, self.sweep.accept)
        if ended is not None:
            outcome = Outcome(ended.status, ended.reason, before=ended.before)
            self.claims.end(work.number, outcome)
            stack.close()
        return ended is None


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
