"""Runs the points of a sweep, each at most once.

One loop, `run_points`: take a point, run it, next. It runs on groups of the ranks of a job, in
processes that are forked, or on one group, point after point; and at the same time in any number of
other sweeps of the same folder.
"""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import signal
import sys
import tomllib
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from mpisim.comm.job import on_first, together
from mpisim.comm.side_channel import side_of
from mpisim.comm.subset import groups_of, meet, on_subset
from mpisim.core.errors import InputError, MpisimError
from mpisim.core.file_lock import Locked
from mpisim.core.memory import available
from mpisim.core.schema import require
from mpisim.core.terminal import report
from mpisim.runs.cache import ProblemCache
from mpisim.runs.experiment import parse
from mpisim.runs.launch import guarded
from mpisim.runs.log.lock import lock_of
from mpisim.runs.loop import run_rounds
from mpisim.runs.placement import here
from mpisim.runs.record import Output
from mpisim.runs.setup import Setup
from mpisim.runs.signals import StopSignals, nobody
from mpisim.runs.status import COMPLETE, STOPPED
from mpisim.runs.sweep.claims import Claims, new_claims
from mpisim.runs.sweep.order import Work, choose, limits, say_what_fits, share, works_of
from mpisim.runs.sweep.plan import completed, plan
from mpisim.runs.sweep.points import (
    ALONE,
    ONE_RANK,
    Group,
    Outcome,
    Point,
    Shard,
    Spread,
    folder_lock,
    merge_summary,
)
from mpisim.runs.sweep.progress import Board, PointLines
from mpisim.runs.tables import Tables

if TYPE_CHECKING:
    from mpi4py import MPI

GO_ON = "the same command continues"
LOOK_SECONDS = 0.25


def sweep(
    folder: Path,
    grid: list[Tables],
    comm: MPI.Intracomm,
    command: str = "",
    accept: bool = False,
    spread: Spread = ONE_RANK,
    group: Group = ALONE,
) -> list[Point]:
    """Run what is missing of a grid; returns all points, on every rank, in the order of the plan.

    Points that say nothing of ranks run side by side, each on as many as ``spread`` says. Those
    that ask for ranks follow, one after the other, while the other ranks sleep. A point with a
    complete log is not run; an incomplete one is resumed from its checkpoint, or run again without
    one, or if other code wrote its rows and ``accept`` does not take them. One without a log goes
    on where that of a smaller budget ended. Points that cannot run are skipped, and divergence is
    recorded. A point that another process is running comes last, and is skipped if that still runs
    it then. SIGINT and SIGTERM end the sweep with the current runs; later points keep no status.
    Rank 0 keeps FOLDER/sweep.json up to date. Collective; raises `InputError` if no point can run
    at all.

    comm : of the job; a `OneProcess` if ``spread`` has jobs
    group : of several sweeps, this one
    """
    control, size = comm.Dup(), spread.ranks_per_run
    allowed = f"an integer from 1 to the {comm.size} ranks of the job"
    require(1 <= size <= comm.size, "--ranks-per-run", size, allowed)
    with StopSignals() as signals:
        points = on_first(control, lambda: _begin(folder, grid, comm.size, accept, spread.shard))
        lines = PointLines(points)
        task = Sweep(folder, points, signals, command, accept, spread.shard, group, lines)
        if comm.rank == 0:
            lines.ended_before()
        if spread.jobs:
            for with_ranks, jobs in ((False, spread.jobs), (True, 1)):
                if works := task.works(with_ranks):
                    _run_in_processes(task, works, jobs)
        else:
            if comm.size >= 2 * size and (works := on_first(control, lambda: task.works(False))):
                _run_in_groups(task, works, size, comm)
            if works := on_first(control, task.works):
                _run_in_sequence(task, works, size, comm)
    points = control.bcast(points)  # rank 0 knows how they ended
    control.Free()
    return points


def _begin(folder: Path, grid: list[Tables], ranks: int, accept: bool, shard: Shard) -> list[Point]:
    """The plan, and its summary, with how the points of other shards have ended."""
    with folder_lock(folder):
        points = plan(folder, grid, ranks, accept)
        elsewhere = {point.name for place, point in enumerate(points) if not shard.has(place)}

        def prefers(point: Point, other: Point) -> bool:
            return not point.status and point.name in elsewhere and other.status not in COMPLETE

        merge_summary(folder, points, prefers)
    return points


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
                report(self.signals.stopped(status, end.row.round, output.log))
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


def _run_in_sequence(sweep: Sweep, works: Sequence[Work], ranks: int, comm: MPI.Intracomm) -> None:
    """Run points one after the other on all ranks of the job. Collective.

    A point that asks for no ranks has ``ranks`` of them; the others sleep.
    """
    with ExitStack() as stack:
        claims = on_first(side_of(comm), lambda: stack.enter_context(new_claims(sweep.folder)))
        board = sweep.board(works, claims, live=False) if comm.rank == 0 else None
        run_points(sweep, works, claims, 1, ranks, comm, board)
        if board is not None:
            board.close()


def _run_in_groups(sweep: Sweep, works: Sequence[Work], size: int, comm: MPI.Intracomm) -> None:
    """Run points on groups of ``size`` ranks each. Collective.

    A group that finds no more points sleeps until the others have ended, and so do ranks that no
    group has.
    """
    side, groups = side_of(comm), min(comm.size // size, len(works))
    with ExitStack() as stack:
        claims = on_first(side, lambda: stack.enter_context(new_claims(sweep.folder)))
        group, place = groups_of(comm, size)
        _require_shared(side, claims, place < groups)
        leaders = [(here().machine, available())] if place < groups and group.rank == 0 else []
        free = share([leader for found in side.allgather(leaders) for leader in found])
        most, board = limits(works, groups, free), None
        if comm.rank == 0:
            board = sweep.board(works, claims)
            if len(works) > 1:
                print(f"{len(works)} points to run, {groups} at a time", flush=True)
            say_what_fits(works, most, free)
        if group.rank == 0:
            watch = Watch(claims, board.update if board else nobody, os.getppid())
            sweep.signals.watch = watch
        sweep.signals.go_on = GO_ON
        if place < groups:
            fitting = [work for work in works if work.bytes <= most[place]]
            run_points(sweep, fitting, claims, groups, size, group)
        meet(side, sweep.signals.watch)
        sweep.signals.watch = nobody
        if board is not None:
            board.close()
            sweep.report_left()


def _require_shared(side: MPI.Intracomm, claims: Claims, runs: bool) -> None:
    """`InputError` on every rank unless all that run points see the same folder."""
    blind = [name for name in side.allgather("" if not runs or claims.seen() else here().host)]
    hosts = sorted(set(filter(None, blind)))
    if hosts:
        error = InputError(
            f"{claims.folder.parent}: is not shared with {', '.join(hosts)}, where points would run"
            f" side by side; --ranks-per-run {side.size} runs one after the other on all ranks"
        )
        error.agreed = True
        raise error


def _run_in_processes(sweep: Sweep, works: Sequence[Work], jobs: int) -> None:
    """Run points in processes of this machine, ``jobs`` at a time, without MPI.

    This process waits, and shows the progress. The others are forked from it, with all that it has
    imported. If one fails, the others stop at the end of a round. Raises `SystemExit` with its code
    if it has reported an error, and `MpisimError` if it was killed.
    """
    jobs, free = min(jobs, len(works)), available()
    most, context = limits(works, jobs, free), multiprocessing.get_context("fork")
    say_what_fits(works, most, free)
    sweep.signals.go_on = GO_ON
    with new_claims(sweep.folder) as claims:
        board, processes = sweep.board(works, claims), []
        for limit in most:
            fitting = [work for work in works if work.bytes <= limit]
            words = sweep, fitting, claims, jobs, os.getpid()
            processes.append(context.Process(target=_run_process, args=words))
        sys.stdout.flush()
        with _all_ended(processes):
            for process in processes:
                process.start()
            _follow(sweep, processes, board.update)
        board.close()
        sweep.report_left()
    for process in processes:
        if process.exitcode:
            _fail(process.exitcode)


def _run_process(
    sweep: Sweep, works: Sequence[Work], claims: Claims, jobs: int, parent: int
) -> None:
    """What a process does. Ctrl-C reaches the parent alone, which passes it on."""
    os.setpgid(0, 0)

    def work(comm: MPI.Intracomm) -> int:
        sweep.signals.watch = Watch(claims, nobody, parent)
        run_points(sweep, works, claims, jobs, 1, comm)
        return 0

    code = guarded(work)
    sys.stdout.flush()
    os._exit(code)  # what the parent would clean up is the parent's


def _follow(sweep: Sweep, processes: Sequence[BaseProcess], update: Callable[[], int]) -> None:
    """Wait for the processes; pass a signal on, and stop all when one fails."""
    told = False
    while running := [process for process in processes if process.exitcode is None]:
        wait([process.sentinel for process in running], LOOK_SECONDS)
        failed = any(process.exitcode for process in processes)
        if (sweep.signals.received or failed) and not told:
            told = True
            _send(processes, sweep.signals.received or signal.SIGTERM)
        update()


@contextmanager
def _all_ended(processes: Sequence[BaseProcess]) -> Iterator[None]:
    """Leave no process behind, whatever happens."""
    try:
        yield
    finally:
        _send(processes, signal.SIGKILL)
        for process in processes:
            if process.pid is not None:
                process.join()


def _send(processes: Sequence[BaseProcess], number: int) -> None:
    for process in processes:
        if process.pid is not None and process.exitcode is None:
            os.kill(process.pid, number)


def _fail(code: int) -> None:
    if code > 0:
        sys.exit(code)
    name = signal.Signals(-code).name
    raise MpisimError(f"a process of the sweep was killed by {name}; {GO_ON}")
