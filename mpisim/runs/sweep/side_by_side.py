"""Runs points side by side on groups of the ranks of a job."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mpisim.comm.job import on_first
from mpisim.comm.side_channel import side_of
from mpisim.comm.subset import groups_of, meet
from mpisim.core.errors import InputError
from mpisim.core.memory import available, gigabytes
from mpisim.runs.placement import here
from mpisim.runs.signals import nobody
from mpisim.runs.sweep.board import Board
from mpisim.runs.sweep.claims import Claims, Outcome
from mpisim.runs.sweep.execute import GO_ON, Sweep
from mpisim.runs.sweep.group import Watch, run_group
from mpisim.runs.sweep.lines import PointLines
from mpisim.runs.sweep.order import Work, limits
from mpisim.runs.sweep.sizes import works_of

if TYPE_CHECKING:
    from mpi4py import MPI


def run_side_by_side(
    sweep: Sweep, numbers: Sequence[int], size: int, comm: MPI.Intracomm, lines: PointLines
) -> None:
    """Run the points with these numbers on groups of ``size`` ranks each. Collective.

    A group that finds no more points sleeps until the others have ended, and so do ranks that no
    group has.
    """
    side = side_of(comm)
    works = on_first(side, lambda: works_of(sweep.points, numbers))
    groups = min(comm.size // size, len(works))
    claims = on_first(side, lambda: Claims.new(sweep.folder))
    group, own = groups_of(comm, size)
    _require_shared(side, claims, own < groups)
    leaders = [(here().machine, available())] if own < groups and group.rank == 0 else []
    found = [leader for found in side.allgather(leaders) for leader in found]
    most = limits(works, groups, share(found))
    board = None
    if comm.rank == 0:
        board = Board(sweep, works, claims, lines)
        if len(works) > 1:
            print(f"{len(works)} points to run, {groups} at a time", flush=True)
        say_what_fits(works, most, share(found))
    if group.rank == 0:
        sweep.signals.watch = Watch(claims, board.update if board else nobody, os.getppid())
    sweep.signals.go_on = GO_ON
    if own < groups:
        fitting = [work for work in works if work.bytes <= most[own]]
        run_group(sweep, fitting, claims, groups, group)
    meet(side, sweep.signals.watch)
    sweep.signals.watch = nobody
    if board is not None:
        board.close()
    ended = {n: _outcome(sweep, n) for n in numbers if sweep.points[n].status}
    for number, outcome in side.bcast(ended).items():
        sweep.points[number].end(*outcome)
    if comm.rank == 0:
        claims.remove()


def share(leaders: Sequence[tuple[str, float]]) -> float:
    """The bytes that all runs may take together, from each group's machine and what is free there.

    As if all machines were as small, for each group, as the smallest.
    """
    on_machine = Counter(machine for machine, _ in leaders)
    return len(leaders) * min(free / on_machine[machine] for machine, free in leaders)


def say_what_fits(works: Sequence[Work], most: Sequence[float], free: float) -> None:
    """Print a line if not all groups can take all points."""
    largest = max(work.bytes for work in works)
    able = sum(largest <= limit for limit in most)
    if able < len(most):
        big = sum(work.bytes > min(most) for work in works)
        print(
            f"{big} of {len(works)} points need up to {gigabytes(largest)} each, {gigabytes(free)}"
            f" are free: {able} of them at a time, not {len(most)}",
            flush=True,
        )


def _outcome(sweep: Sweep, number: int) -> Outcome:
    point = sweep.points[number]
    return Outcome(point.status, point.reason, point.seconds or 0.0)


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
