"""Runs the points of a sweep one after the other, each at most once."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from time import monotonic

from mpi4py import MPI

from mpisim.comm.job import on_first, together
from mpisim.comm.subset import on_subset
from mpisim.core.atomic_file import make_folder
from mpisim.core.errors import InputError
from mpisim.core.file_lock import FileLock, Locked
from mpisim.core.terminal import report
from mpisim.runs.cache import ProblemCache
from mpisim.runs.experiment import parse
from mpisim.runs.log.lock import locked, require_text
from mpisim.runs.loop import run_rounds
from mpisim.runs.progress import duration
from mpisim.runs.record import Output
from mpisim.runs.setup import Setup
from mpisim.runs.signals import StopSignals
from mpisim.runs.status import STOPPED
from mpisim.runs.sweep.plan import plan
from mpisim.runs.sweep.points import Point, write_summary
from mpisim.runs.tables import Tables

GO_ON = "the same command goes on"


def sweep(
    folder: Path,
    grid: list[Tables],
    comm: MPI.Intracomm,
    command: str = "",
    accept: bool = False,
) -> list[Point]:
    """Run what is missing of a grid; returns all points, on every rank, in the order of running.

    A point runs on all ranks, or on as many as it says, while the others sleep. One with a complete
    log is not run; an incomplete one is resumed from its checkpoint, or run again without one, or
    if other code wrote its rows and ``accept`` does not take them. One without a log goes on where
    that of a smaller budget ended. Points that cannot run, or that
    another run is writing, are skipped, and divergence is recorded. SIGINT and SIGTERM end the
    sweep with the current run; later points keep no status. Rank 0 keeps FOLDER/sweep.json up to
    date. Collective; raises `InputError` if no point can run at all.
    """
    control = comm.Dup()
    with StopSignals() as signals, ExitStack() as stack:
        on_first(control, lambda: _lock(folder, stack))
        points = on_first(control, lambda: plan(folder, grid, comm.size, accept))
        kept, progress = _Kept(), _SweepProgress(points)
        for number, point in enumerate(points, 1):
            if comm.rank == 0:
                progress.begin(number, point)
            if not point.status:
                left = sum(not other.status for other in points)
                signals.go_on = f"{left} of {len(points)} points are left; {GO_ON}"
                ranks = point.ranks or comm.size
                log = Path(point.log)
                earlier = Path(point.earlier) if point.earlier else None
                flags = {"force": True, "resume": True, "accept": accept}
                output = Output(log, **flags, command=command, earlier=earlier)
                run = partial(_run, point, output, kept.on(ranks), signals)
                point.end(*on_subset(comm, ranks, run))
                if comm.rank == 0:
                    progress.end(point)
                    write_summary(folder, points)
            if point.status in STOPPED:
                break
        if comm.rank == 0:
            write_summary(folder, points)
    control.Free()
    return points


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


def _run(
    point: Point, output: Output, cache: ProblemCache, signals: StopSignals, comm: MPI.Intracomm
) -> tuple[str, str, float]:
    """Run a point on all ranks of ``comm``; how it ended, why it was skipped, and the seconds."""
    start, control = monotonic(), comm.Dup()
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(comm, output.log))
            config = tomllib.loads(point.config)
            setup = together(control, lambda: Setup(parse(config), comm, cache))
        except InputError as error:
            if not error.agreed:
                raise
            status, reason = "skipped", str(error)
        else:
            end = run_rounds(setup, output, signals)
            status, reason = end.status, ""
            if status in STOPPED and comm.rank == 0:
                report(signals.stopped(status, end.row.round, output.log))
    control.Free()
    return status, reason, monotonic() - start


def counts(points: Sequence[Point]) -> str:
    """How many points ended with which status, as text."""
    ended = Counter(point.status or "not run" for point in points)
    before = sum(point.before for point in points)
    words = [f"{number} {status}" for status, number in ended.items()]
    return f"{len(points)} points: {', '.join(words)}; {before} of them complete before"


class _SweepProgress:
    """The lines that rank 0 prints; a reason is given in full once."""

    def __init__(self, points: Sequence[Point]):
        self.points = len(points)
        self.waiting = sum(not point.status for point in points)
        self.ran, self.start = 0, monotonic()
        self.reasons: set[str] = set()

    def begin(self, number: int, point: Point) -> None:
        """The line of a point, with its status if it has ended already."""
        ended = f": {point.status}" if point.status else ""
        why = " before" if point.before else self._why(point)
        name = Path(point.log).name or point.name
        left = ""
        if self.ran and not point.status:  # if the remaining points take as long as those that ran
            seconds = (monotonic() - self.start) / self.ran * (self.waiting - self.ran)
            left = f", about {duration(seconds)} left"
        print(f"[{number}/{self.points}] {name}{ended}{why}{left}", flush=True)

    def end(self, point: Point) -> None:
        """A second line for a point that turned out not to run; a run prints its own."""
        self.ran += 1
        if point.status == "skipped":
            print(f"  skipped{self._why(point)}", flush=True)

    def _why(self, point: Point) -> str:
        if not point.reason:
            return ""
        known = point.reason in self.reasons
        self.reasons.add(point.reason)
        return ", for the same reason" if known else f": {point.reason}"


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
