"""Runs the points of a sweep, each at most once.

`runner.run_points` runs on groups of the ranks of a job, in processes that are forked, or on one
group that is alone; and at the same time in other sweeps of the same folder.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import chain
from math import inf
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from mpisim.comm.communicators import Comm, groups_of, meet, side_of
from mpisim.comm.job import on_first
from mpisim.core.errors import InputError, MpisimError
from mpisim.core.machine import available_memory, gigabytes, launched
from mpisim.core.schema import require
from mpisim.runs.host import guarded, here
from mpisim.runs.labels import Tables
from mpisim.runs.stop import COMPLETE, STATUS, StopSignals, no_signal
from mpisim.runs.sweep.plan import plan
from mpisim.runs.sweep.points import (
    ONE_RANK,
    Claims,
    Point,
    Shard,
    Spread,
    folder_lock,
    left_by_killed,
    merge_summary,
    new_claims,
)
from mpisim.runs.sweep.progress import PointLines
from mpisim.runs.sweep.runner import GO_ON, LOOK_SECONDS, Sweep, Watch, run_points


def sweep(
    folder: Path,
    grid: list[Tables],
    comm: Comm,
    command: str = "",
    accept: bool = False,
    spread: Spread = ONE_RANK,
    group: str = "",
    quiet: bool = False,
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
    quiet : print no progress
    """
    if spread.jobs and launched():  # MPI does not survive a fork
        raise InputError("--jobs: is for one process; under mpirun the ranks run side by side")
    require(spread.jobs >= 0, "--jobs", spread.jobs, "at least 1, or auto")
    control, size = comm.Dup(), spread.ranks_per_run
    allowed = f"an integer from 1 to the {comm.size} ranks of the job"
    require(1 <= size <= comm.size, "--ranks-per-run", size, allowed)
    points = on_first(control, lambda: _begin(folder, grid, comm.size, accept, spread.shard))
    with StopSignals() as signals:
        lines = PointLines(points, quiet)
        how = accept, spread.shard, group, lines, spread.separate or size > 1
        task = Sweep(folder, points, signals, command, *how)
        if comm.rank == 0 and (together := task.together()):
            lines.say(
                f"{together} points differ in step or seed alone from others, and can advance"
                " together with these (--separate: each for itself)"
            )
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
                _run_groups(task, numbers, size, groups, comm)
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
    if left_by_killed(folder):  # perhaps after its last point, so that none is left to run
        with new_claims(folder):
            pass
    return points


def _run_alone(sweep: Sweep, numbers: Sequence[int], size: int, comm: Comm) -> None:
    """Run points one after the other on all ranks of the job. Collective.

    A point that asks for no ranks has ``size`` of them; the others sleep.
    """
    points = [sweep.points[number] for number in numbers]
    with ExitStack() as stack:
        claims = on_first(side_of(comm), lambda: stack.enter_context(new_claims(sweep.folder)))
        board = sweep.board(points, claims) if comm.rank == 0 else None
        run_points(sweep, points, claims, 1, size, comm, board)
        if board is not None:
            board.close()


def _run_groups(sweep: Sweep, numbers: Sequence[int], size: int, groups: int, comm: Comm) -> None:
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
            board = sweep.board(points, claims, groups)
        most = on_first(side, lambda: limits(points, groups, free, sweep.lines.say))
        update = board.update if board else no_signal
        watch = Watch(claims, update, os.getppid()) if group.rank == 0 else no_signal
        sweep.signals.follow(watch, GO_ON)
        if place < groups:
            fitting = [point for point in points if point.bytes <= most[place]]
            run_points(sweep, fitting, claims, groups, size, group)
        meet(side, watch)
        sweep.signals.follow(no_signal, GO_ON)
        if board is not None:
            board.close()
            sweep.report_left()


def _require_shared(side: Comm, claims: Claims, runs: bool) -> None:
    """`InputError` on every rank unless all that run points see the same folder."""
    blind = side.allgather(here().host if runs and not claims.folder.is_dir() else "")
    if hosts := sorted({*blind} - {""}):
        raise InputError(
            f"{claims.folder.parent}: is not shared with {', '.join(hosts)}, where points would run"
            f" side by side; --ranks-per-run {side.size} runs one after the other on all ranks"
        ).on_every_rank()


def _run_in_processes(sweep: Sweep, numbers: Sequence[int], jobs: int) -> None:
    """Run points in processes of this machine, ``jobs`` at a time, without MPI.

    This process waits, and shows the progress. The others are forked from it, with all that it has
    imported. If one fails, the others stop at the end of a round. Then this raises `MpisimError`,
    with the exit code of one that has reported an error.
    """
    points = [sweep.points[number] for number in numbers]
    context, jobs = multiprocessing.get_context("fork"), min(jobs, len(points))
    sweep.signals.follow(no_signal, GO_ON)
    with new_claims(sweep.folder) as claims:
        board, processes = sweep.board(points, claims, jobs), []
        for limit in limits(points, jobs, available_memory(), sweep.lines.say):
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
            error = MpisimError(f"a process of the sweep has failed; {GO_ON}")
            error.exit_code = code
            raise error
        if code < 0:
            name = signal.Signals(-code).name
            raise MpisimError(f"a process of the sweep was killed by {name}; {GO_ON}")


def _run_process(
    sweep: Sweep, points: Sequence[Point], claims: Claims, jobs: int, parent: int
) -> None:
    """What a process does. Ctrl-C reaches the parent alone, which stops all groups."""
    os.setpgid(0, 0)

    def work(comm: Comm) -> int:
        sweep.signals.follow(Watch(claims, no_signal, parent), GO_ON)
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
            claims.stop(STATUS[received])
        update()


def limits(
    points: Sequence[Point], groups: int, available: float, say: Callable[[str], object]
) -> list[float]:
    """The bytes that a point may need at most to be taken by each group, shape (groups,).

    No limit if any points fit side by side. Else the first groups, as many as the largest points
    leave half of the memory to, take any point (the first one in any case), and the others those
    that fit into their share of the rest. A line says so.
    """
    needed = sorted((point.bytes for point in points), reverse=True)
    if not needed or sum(needed[:groups]) <= available:
        return [inf] * groups
    able = max(1, min(groups - 1, int(available / 2 // needed[0])))
    rest = max(0.0, available - able * needed[0]) / (groups - able)
    say(
        f"{sum(size > rest for size in needed)} of {len(points)} points need up to"
        f" {gigabytes(needed[0])} each, {gigabytes(available)} are free: {able} of them at a time,"
        f" not {groups}"
    )
    return [inf] * able + [rest] * (groups - able)


def share(leaders: Sequence[tuple[str, float]]) -> float:
    """The bytes that all runs may take together, from each group's machine and what is free there.

    As if all machines were as small, for each group, as the smallest.
    """
    on_machine = Counter(machine for machine, _ in leaders)
    return len(leaders) * min(free / on_machine[machine] for machine, free in leaders)
