"""Runs the points of a sweep, each at most once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from mpisim.comm.job import on_first
from mpisim.core.atomic_file import make_folder
from mpisim.core.errors import InputError
from mpisim.core.file_lock import FileLock, Locked
from mpisim.core.schema import require
from mpisim.runs.log.lock import require_text
from mpisim.runs.signals import StopSignals
from mpisim.runs.sweep.execute import Sweep
from mpisim.runs.sweep.jobs import run_in_processes
from mpisim.runs.sweep.lines import PointLines
from mpisim.runs.sweep.plan import plan
from mpisim.runs.sweep.points import ALONE, ONE_RANK, Group, Point, Spread, write_summary
from mpisim.runs.sweep.sequence import run_in_sequence
from mpisim.runs.sweep.side_by_side import run_side_by_side
from mpisim.runs.tables import Tables

if TYPE_CHECKING:
    from mpi4py import MPI


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
    on where that of a smaller budget ended. Points that cannot run, or that another run is writing,
    are skipped, and divergence is recorded. SIGINT and SIGTERM end the sweep with the current runs;
    later points keep no status. Rank 0 keeps FOLDER/sweep.json up
    to date. Collective; raises `InputError` if no point can run at all.

    comm : of the job; a `OneProcess` if ``spread`` has jobs
    group : of several sweeps, this one
    """
    control = comm.Dup()
    with StopSignals() as signals, ExitStack() as stack:
        _require_ranks(spread.ranks_per_run, comm.size)
        on_first(control, lambda: _lock(folder, stack))
        points = on_first(control, lambda: plan(folder, grid, comm.size, accept))
        task = Sweep(folder, points, signals, command, accept, group)
        lines = PointLines(points)
        if comm.rank == 0:
            lines.ended_before()
        if spread.jobs:
            _in_processes(task, spread.jobs, lines)
        else:
            _on_ranks(task, spread.ranks_per_run, comm, lines)
        if comm.rank == 0:
            write_summary(folder, points)
    points = control.bcast(points)  # the ranks that run a point do not measure the same seconds
    control.Free()
    return points


def counts(points: Sequence[Point]) -> str:
    """How many points ended with which status, as text."""
    ended = Counter(point.status or "not run" for point in points)
    before = sum(point.before for point in points)
    words = [f"{number} {status}" for status, number in ended.items()]
    many = "point" if len(points) == 1 else "points"
    return f"{len(points)} {many}: {', '.join(words)}; {before} of them complete before"


def _on_ranks(task: Sweep, size: int, comm: MPI.Intracomm, lines: PointLines) -> None:
    """Run points side by side, then those that ask for ranks, or where there is one group only."""
    free = task.waiting(with_ranks=False)
    if free and comm.size >= 2 * size:
        run_side_by_side(task, free, size, comm, lines)
    if not task.stopped():
        run_in_sequence(task, size, comm, lines)


def _in_processes(task: Sweep, jobs: int, lines: PointLines) -> None:
    """Run points side by side, then those that ask for a rank."""
    for with_ranks, at_once in ((False, jobs), (True, 1)):
        numbers = task.waiting(with_ranks)
        if numbers and not task.stopped():
            run_in_processes(task, numbers, at_once, lines)


def _require_ranks(size: int, started: int) -> None:
    allowed = f"an integer from 1 to the {started} ranks of the job"
    require(1 <= size <= started, "--ranks-per-run", size, allowed)


def _lock(folder: Path, stack: ExitStack) -> None:
    """Allow one sweep at a time in a folder until ``stack`` ends, or the process."""
    require_text(folder)
    try:
        make_folder(folder)
        stack.enter_context(FileLock(folder / ".lock"))
    except Locked as holder:
        who = f" ({holder})" if str(holder) else ""
        raise InputError(f"{folder}: another sweep is running there{who}; wait for it") from None
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror}") from None
