"""Runs points of a sweep on a group of ranks until there are no more, and says which comes next."""

from __future__ import annotations

import dataclasses
import os
import signal
import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from time import monotonic
from typing import Any

from mpisim.comm.communicators import Comm, on_subset, side_of
from mpisim.comm.job import on_first, together
from mpisim.core.errors import InputError
from mpisim.core.files import Locked
from mpisim.core.terminal import report
from mpisim.runs.ensemble import run_together
from mpisim.runs.experiment import parse
from mpisim.runs.identity import of_log
from mpisim.runs.log.writer import lock_of
from mpisim.runs.loop import run_rounds
from mpisim.runs.record import Output
from mpisim.runs.resume import is_absent
from mpisim.runs.setup import ProblemCache, Setup
from mpisim.runs.stop import COMPLETE, STOPPED, StopSignals
from mpisim.runs.sweep.plan import completed
from mpisim.runs.sweep.points import Claims, Outcome, Point, Shard, digests_of, stamp_of
from mpisim.runs.sweep.progress import Board, PointLines

GO_ON = "the same command continues"
LOOK_SECONDS = 0.25
TOGETHER, TOGETHER_BYTES = 32, 1 << 28  # that advance together at most: points, bytes of all


@dataclasses.dataclass(frozen=True)
class Sweep:
    """What the runs of a sweep share.

    folder : of the logs
    points : all of them, in the order of the plan; rank 0 keeps their status
    signals : that end the sweep
    command, accept : as in `Output`
    shard : the points that this sweep runs
    group : of several sweeps, this one
    lines : a line for each point
    separate : whether no points advance together
    """

    folder: Path
    points: Sequence[Point]
    signals: StopSignals
    command: str
    accept: bool
    shard: Shard
    group: str
    lines: PointLines
    separate: bool = False

    def waiting(self, with_ranks: bool | None) -> list[int]:
        """The points to run that ask for ranks, or do not; None: both. None left after a signal."""
        if self.stopped():
            return []
        points = [p for p in self.points if with_ranks in (None, p.ranks is not None)]
        return [p.number for p in points if not p.status and self.shard.has(p.number)]

    def together(self) -> int:
        """How many points can advance together with others."""
        numbers = [] if self.separate else self.waiting(False)
        points = [self.points[number] for number in numbers]
        alike = Counter(point.alike for point in points if point.alike and is_fresh(point))
        return sum(count for count in alike.values() if count > 1)

    def board(self, points: Sequence[Point], claims: Claims, groups: int = 0) -> Board:
        """The display of points that so many groups run side by side; 0: one after the other."""
        if groups:
            self.lines.say(f"{len(points)} points to run, {groups} at a time")
        return Board(self.folder, points, claims, self.lines, self.group, live=groups > 0)

    def stopped(self) -> str:
        """The status of a run that a signal has stopped; empty if there is none."""
        return next((point.status for point in self.points if point.status in STOPPED), "")

    def left(self) -> str:
        """How many points are left, and how to go on with them."""
        sharded = [point for point in self.points if self.shard.has(point.number)]
        left = sum(not point.status or point.status in STOPPED for point in sharded)
        return f"{left} of {len(sharded)} points are left; {GO_ON}"

    def report_left(self) -> None:
        """Print how many points are left, if a signal has stopped runs."""
        if status := self.stopped():
            report(self.signals.ended(status, self.left()))


def run_points(
    sweep: Sweep,
    points: Sequence[Point],
    claims: Claims,
    groups: int,
    ranks: int,
    comm: Comm,
    board: Board | None = None,
) -> None:
    """Run ``points`` until none is left, or the sweep stops. Collective.

    groups : that run points at the same time
    ranks : of ``comm``, for a point that asks for none; the others sleep
    board : on rank 0 of a group that is alone, and prints the progress of each run
    """
    side, queue = side_of(comm), Queue(points, claims, groups, sweep.accept)
    cache, size = ProblemCache(), 0
    while True:
        with ExitStack() as lock:
            point = on_first(side, lambda: queue.take(lock))
            if point is None:
                return
            alone = sweep.separate or comm.size > 1
            points = [point] if alone else [point, *queue.take_alike(point, lock)]
            if size != (point.ranks or ranks):  # a rank that slept keeps what others have replaced
                size, cache = point.ranks or ranks, ProblemCache()
            if board is not None:
                board.update()
                board.begins(point.number, len(points) - 1)
                sweep.signals.follow(sweep.signals.watch, sweep.left())

            quiet = board is None or sweep.lines.quiet
            runs = [
                (one, Output(
                    Path(one.log), force=True, resume=True, accept=sweep.accept,
                    command=sweep.command, quiet=quiet or one is not point,
                    earlier=Path(one.earlier) if one.earlier else None,
                    side_by_side=groups, advice=False,
                ))
                for one in points
            ]  # fmt: skip
            outcomes = on_subset(comm, size, lambda part: _run(sweep, runs, cache, part))  # noqa: B023
            for one, outcome in zip(points, outcomes if comm.rank == 0 else (), strict=False):
                claims.end(one.number, outcome)
            if board is not None:
                board.update()
        if stopped := next((one.status for one in outcomes if one.status in STOPPED), ""):
            if comm.rank == 0:
                claims.stop(stopped)
            return


def _run(
    sweep: Sweep, runs: Sequence[tuple[Point, Output]], cache: ProblemCache, comm: Comm
) -> list[Outcome]:
    """Run a point, or several together, on all ranks of ``comm``. Collective.

    The caller holds the locks of the logs.
    """
    start, control = monotonic(), comm.Dup()
    setups: dict[int, Setup] = {}
    outcomes: dict[int, Outcome] = {}
    for point, output in runs:
        config = tomllib.loads(point.config)
        try:
            with sweep.signals.at_once() if output.side_by_side == 1 else nullcontext():
                setups[point.number] = together(control, lambda: Setup(parse(config), comm, cache))  # noqa: B023
        except InputError as error:
            if not error.agreed:
                raise
            outcomes[point.number] = Outcome("skipped", str(error), monotonic() - start)
    outputs = [output for point, output in runs if point.number in setups]
    able = [dataclasses.replace(output, ensemble=len(setups)) for output in outputs]
    if len(setups) > 1:
        ends = run_together([*setups.values()], able, sweep.signals)
    else:
        pairs = zip(setups.values(), able, strict=True)
        ends = [run_rounds(setup, output, sweep.signals) for setup, output in pairs]
    seconds = (monotonic() - start) / max(len(setups), 1)
    for number, end, output in zip(setups, ends, able, strict=True):
        stamp = ""
        if end.status in STOPPED and comm.rank == 0:
            report(sweep.signals.stopped(end.status, end.row["round"], output.log))
        if end.status in COMPLETE and comm.rank == 0 and not end.before:
            log = end.attributes
            stamp = stamp_of(end.sha256, of_log(log), digests_of(log))
        outcomes[number] = Outcome(end.status, "", seconds, stamp=stamp)
    control.Free()
    return [outcomes[point.number] for point, _ in runs]


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


class Queue:
    """Takes ``points`` for one of several ``groups``, on its first rank.

    The claim keeps other groups of the sweep away, and the lock of the log everybody else.
    ``accept``: whether a complete log that other code wrote is complete.
    """

    def __init__(self, points: Sequence[Point], claims: Claims, groups: int, accept: bool):
        self.points, self.claims, self.groups, self.accept = points, claims, groups, accept
        self._loaded: tuple[Any, ...] | None = None  # the problem of the last point
        self._elsewhere: list[Point] = []  # what other processes are running

    def take(self, stack: ExitStack) -> Point | None:
        """The next point, with the lock of its log until ``stack`` ends; None: no more."""
        while not self.claims.stopped():
            point = choose(self.points, self.claims.taken(), self._loaded, self.groups)
            last = point is None
            if point is None:
                if not self._elsewhere:
                    return None
                point = self._elsewhere.pop(0)
            elif not self.claims.take(point.number):
                continue
            if self._lock(point, stack, last):
                self._loaded = point.problem
                return point
        return None

    def take_alike(self, point: Point, stack: ExitStack) -> list[Point]:
        """Further points that can advance together with ``point``, with the locks of their logs.

        Not more than the group's share of those that are left, and what memory and caches bear.
        """
        if not (point.alike and is_fresh(point)):
            return []
        taken = self.claims.taken()
        left = [one for one in self.points if one.number not in taken]
        share = -(-(len(left) + 1) // self.groups)
        most = int(min(share, TOGETHER, TOGETHER_BYTES / max(point.bytes, 1.0)))
        further: list[Point] = []
        for one in left:
            if len(further) + 1 >= most:
                break
            if one.alike == point.alike and is_fresh(one) and self.claims.take(one.number):
                with ExitStack() as lock:
                    if not self._lock(one, lock, False):
                        continue
                    if is_fresh(one):
                        stack.push(lock.pop_all())
                        further.append(one)
                    else:  # another sweep has begun it meanwhile
                        self._elsewhere.append(one)
        return further

    def _lock(self, point: Point, stack: ExitStack, last: bool) -> bool:
        """Whether the point is to run; if it is busy it is put off, unless this is the ``last``."""
        try:
            stack.enter_context(lock_of(Path(point.log)))
        except InputError as error:
            if isinstance(error.__context__, Locked) and not last:
                self._elsewhere.append(point)
            else:
                self.claims.end(point.number, Outcome("skipped", str(error)))
            return False
        if outcome := completed(point, self.accept):
            self.claims.end(point.number, outcome)
            stack.close()
        return outcome is None


def is_fresh(point: Point) -> bool:
    """Whether it starts at round 0, because nothing of it has been written."""
    return not point.earlier and is_absent(Path(point.log))


def choose(points: Sequence[Point], taken: set[int], loaded: object, groups: int) -> Point | None:
    """The point that a free group takes; None if all are taken.

    The first of the plan if there is one group. Else the biggest point of the problem that the
    group has ``loaded``. If there is none, the group turns to the problem with the most work among
    those that nobody has begun, or, failing that, among all. A point that is larger than the
    group's share of what is left goes first, whatever is loaded: if it started last, the others
    would wait for it.
    """
    waiting = [point for point in points if point.number not in taken]
    if not waiting or groups == 1:
        return waiting[0] if waiting else None
    left: dict[object, float] = {}
    for point in waiting:
        left[point.problem] = left.get(point.problem, 0.0) + point.size
    waiting.sort(key=lambda point: (-point.size, point.number))
    if waiting[0].size * groups > sum(left.values()):
        return waiting[0]
    problem = loaded
    if loaded not in left:
        begun = {point.problem for point in points if point.number in taken}
        fresh = [problem for problem in left if problem not in begun]
        problem = max(fresh or left, key=left.__getitem__)
    return next(point for point in waiting if point.problem == problem)
