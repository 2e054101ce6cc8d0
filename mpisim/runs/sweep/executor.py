"""Runs the points of a sweep, each at most once.

The loop over points is `run_points`. It runs on groups of the ranks of a job, in processes that are
forked, or on one group that is alone; and at the same time in other sweeps of the same folder.
"""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import signal
import sys
import tomllib
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from itertools import chain
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from mpisim.comm.communicators import groups_of, meet, on_subset, side_of
from mpisim.comm.job import on_first, together
from mpisim.core.errors import InputError, MpisimError
from mpisim.core.machine import available_memory
from mpisim.core.schema import require
from mpisim.core.terminal import report
from mpisim.runs.experiment import parse
from mpisim.runs.host import guarded, here
from mpisim.runs.labels import Tables
from mpisim.runs.loop import run_rounds
from mpisim.runs.record import Output
from mpisim.runs.setup import ProblemCache, Setup
from mpisim.runs.signals import COMPLETE, STOPPED, StopSignals, nobody
from mpisim.runs.sweep.plan import plan
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
from mpisim.runs.sweep.queue import Claims, Queue, limits, new_claims, share

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
    points = on_first(control, lambda: _begin(folder, grid, comm.size, accept, spread.shard))
    with StopSignals() as signals:
        lines = PointLines(points)
        task = Sweep(folder, points, signals, command, accept, spread.shard, group, lines)
        for point in points if comm.rank == 0 else ():
            if point.status:
                lines.ended(point.number)
        if spread.jobs:
            for with_ranks, jobs in ((False, spread.jobs), (True, 1)):
                if numbers := task.waiting(with_ranks):
                    _run_in_processes(task, numbers, jobs)
        else:
            numbers = on_first(control, lambda: task.waiting(False))
            if (groups := min(comm.size // size, len(numbers))) > 1:
                _run_in_groups(task, numbers, size, groups, comm)
            if numbers := on_first(control, lambda: task.waiting(None)):
                _run_alone(task, numbers, size, comm)
    points = control.bcast(points)  # rank 0 knows how they ended
    control.Free()
    return points


def _begin(folder: Path, grid: list[Tables], ranks: int, accept: bool, shard: Shard) -> list[Point]:
    """The plan, and its summary, with how the points of other shards have ended."""
    with folder_lock(folder):
        points = plan(folder, grid, ranks, accept)
        elsewhere = {point.name for point in points if not shard.has(point.number)}

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
    lines : a line for each point
    """

    folder: Path
    points: Sequence[Point]
    signals: StopSignals
    command: str
    accept: bool
    shard: Shard
    group: Group
    lines: PointLines

    def waiting(self, with_ranks: bool | None) -> list[int]:
        """The points to run that ask for ranks, or do not; None: both. None left after a signal."""
        return [
            point.number
            for point in (self.points if not self.stopped() else ())
            if not point.status
            and self.shard.has(point.number)
            and with_ranks in (None, point.ranks is not None)
        ]

    def board(self, points: Sequence[Point], claims: Claims, live: bool = True) -> Board:
        """The display of these points."""
        return Board(self.folder, points, claims, self.lines, self.group, live)

    def stopped(self) -> str:
        """The status of a run that a signal has stopped; empty if there is none."""
        return next((point.status for point in self.points if point.status in STOPPED), "")

    def left(self) -> str:
        """How many points are left, and how to go on with them."""
        mine = [point for point in self.points if self.shard.has(point.number)]
        left = sum(not point.status or point.status in STOPPED for point in mine)
        return f"{left} of {len(mine)} points are left; {GO_ON}"

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
    comm: MPI.Intracomm,
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
            if size != (point.ranks or ranks):  # a rank that slept keeps what others have replaced
                size, cache = point.ranks or ranks, ProblemCache()
            if board is not None:
                board.update()
                board.begins(point.number)
                sweep.signals.go_on = sweep.left()

            def expect(seconds: float, number: int = point.number) -> None:
                claims.expect(number, seconds)
                if board is not None:
                    board.update()

            how = {"quiet": board is None, "side_by_side": groups, "expected": expect}
            outcome = on_subset(comm, size, lambda part: _run(sweep, point, cache, part, **how))  # noqa: B023
            if comm.rank == 0:
                claims.end(point.number, outcome)
            if board is not None:
                board.update()
        if outcome.status in STOPPED:
            if comm.rank == 0:
                claims.stop(outcome.status)
            return


def _run(
    sweep: Sweep, point: Point, cache: ProblemCache, comm: MPI.Intracomm, **how: Any
) -> Outcome:
    """Run a point on all ranks of ``comm``; ``how``: more keys of `Output`. Collective.

    The caller holds the lock of the log.
    """
    earlier = Path(point.earlier) if point.earlier else None
    flags = {"force": True, "resume": True, "accept": sweep.accept} | how
    output = Output(Path(point.log), **flags, command=sweep.command, earlier=earlier)
    start, control = monotonic(), comm.Dup()
    try:
        config = tomllib.loads(point.config)
        with sweep.signals.at_once() if how["side_by_side"] == 1 else nullcontext():
            setup = together(control, lambda: Setup(parse(config), comm, cache))
    except InputError as error:
        if not error.agreed:
            raise
        status, reason = "skipped", str(error)
    else:
        end = run_rounds(setup, output, sweep.signals)
        status, reason = end.status, ""
        if status in STOPPED and comm.rank == 0:
            report(sweep.signals.stopped(status, end.row["round"], output.log))
    control.Free()
    return Outcome(status, reason, monotonic() - start)


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


def _run_alone(sweep: Sweep, numbers: Sequence[int], size: int, comm: MPI.Intracomm) -> None:
    """Run points one after the other on all ranks of the job. Collective.

    A point that asks for no ranks has ``size`` of them; the others sleep.
    """
    points = [sweep.points[number] for number in numbers]
    with ExitStack() as stack:
        claims = on_first(side_of(comm), lambda: stack.enter_context(new_claims(sweep.folder)))
        board = sweep.board(points, claims, live=False) if comm.rank == 0 else None
        run_points(sweep, points, claims, 1, size, comm, board)
        if board is not None:
            board.close()


def _run_in_groups(
    sweep: Sweep, numbers: Sequence[int], size: int, groups: int, comm: MPI.Intracomm
) -> None:
    """Run points on groups of ``size`` ranks each. Collective.

    A group that finds no more points sleeps until the others have ended, and so do ranks that no
    group has.
    """
    side, points = side_of(comm), [sweep.points[number] for number in numbers]
    with ExitStack() as stack:
        claims = on_first(side, lambda: stack.enter_context(new_claims(sweep.folder)))
        group, place = groups_of(comm, size)
        _require_shared(side, claims, place < groups)
        leads = place < groups and group.rank == 0
        machines = side.allgather([(here().machine, available_memory())] if leads else [])
        free, board = share([*chain(*machines)]), None
        if comm.rank == 0:
            board = sweep.board(points, claims)
            print(f"{len(points)} points to run, {groups} at a time", flush=True)
        most = on_first(side, lambda: limits(points, groups, free))
        if group.rank == 0:
            update = board.update if board else nobody
            sweep.signals.watch = Watch(claims, update, os.getppid())
        sweep.signals.go_on = GO_ON
        if place < groups:
            fitting = [point for point in points if point.bytes <= most[place]]
            run_points(sweep, fitting, claims, groups, size, group)
        meet(side, sweep.signals.watch)
        sweep.signals.watch = nobody
        if board is not None:
            board.close()
            sweep.report_left()


def _require_shared(side: MPI.Intracomm, claims: Claims, runs: bool) -> None:
    """`InputError` on every rank unless all that run points see the same folder."""
    blind = side.allgather(here().host if runs and not claims.folder.is_dir() else "")
    if hosts := sorted({*blind} - {""}):
        error = InputError(
            f"{claims.folder.parent}: is not shared with {', '.join(hosts)}, where points would run"
            f" side by side; --ranks-per-run {side.size} runs one after the other on all ranks"
        )
        error.agreed = True
        raise error


def _run_in_processes(sweep: Sweep, numbers: Sequence[int], jobs: int) -> None:
    """Run points in processes of this machine, ``jobs`` at a time, without MPI.

    This process waits, and shows the progress. The others are forked from it, with all that it has
    imported. If one fails, the others stop at the end of a round. Raises `SystemExit` with its code
    if it has reported an error, and `MpisimError` if it was killed.
    """
    points = [sweep.points[number] for number in numbers]
    context, jobs = multiprocessing.get_context("fork"), min(jobs, len(points))
    sweep.signals.go_on = GO_ON
    with new_claims(sweep.folder) as claims:
        board, processes = sweep.board(points, claims), []
        for limit in limits(points, jobs, available_memory()):
            fitting = [point for point in points if point.bytes <= limit]
            words = sweep, fitting, claims, jobs, os.getpid()
            processes.append(context.Process(target=_run_process, args=words))
        sys.stdout.flush()
        try:
            for process in processes:
                process.start()
            _follow(sweep, claims, processes, board.update)
        finally:  # leave no process behind
            for process in (process for process in processes if process.pid is not None):
                process.kill()
                process.join()
        board.close()
        sweep.report_left()
    for code in (process.exitcode or 0 for process in processes):
        if code > 0:
            sys.exit(code)
        if code < 0:
            name = signal.Signals(-code).name
            raise MpisimError(f"a process of the sweep was killed by {name}; {GO_ON}")


def _run_process(
    sweep: Sweep, points: Sequence[Point], claims: Claims, jobs: int, parent: int
) -> None:
    """What a process does. Ctrl-C reaches the parent alone, which stops all groups."""
    os.setpgid(0, 0)

    def work(comm: MPI.Intracomm) -> int:
        sweep.signals.watch = Watch(claims, nobody, parent)
        run_points(sweep, points, claims, jobs, 1, comm)
        return 0

    code = guarded(work)
    sys.stdout.flush()
    os._exit(code)  # what the parent would clean up is the parent's


def _follow(
    sweep: Sweep, claims: Claims, processes: Sequence[BaseProcess], update: Callable[[], int]
) -> None:
    """Wait for the processes; stop them after a signal, or when one fails."""
    stopping = False
    while running := [process for process in processes if process.exitcode is None]:
        wait([process.sentinel for process in running], LOOK_SECONDS)
        failed = any(process.exitcode for process in processes)
        if (received := sweep.signals.received or failed * signal.SIGTERM) and not stopping:
            stopping = True
            claims.stop(StopSignals.status(received))
        update()
