"""Running the points of a sweep, all ranks together, each point at most once."""

from __future__ import annotations

import fcntl
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

from mpi4py import MPI

from mpisim.comm.job import on_first, together
from mpisim.core.errors import InputError
from mpisim.runs.cache import ProblemCache
from mpisim.runs.experiment import parse
from mpisim.runs.loop import run_rounds
from mpisim.runs.progress import duration
from mpisim.runs.record import Output
from mpisim.runs.setup import Setup
from mpisim.runs.signals import StopSignals
from mpisim.runs.sweep.plan import plan, resumable
from mpisim.runs.sweep.points import Point, Tables, write_summary

STOPPED = ("interrupted", "terminated")


def sweep(folder: Path, grid: list[Tables], comm: MPI.Intracomm, command: str = "") -> list[Point]:
    """Run what is missing of a grid; all points on every rank, in the order in which they ran.

    A point whose log is complete is not run; an incomplete one goes on from its checkpoint, or
    starts anew without. Impossible points are skipped, a diverging run is noted, SIGINT and
    SIGTERM end the sweep with the run: the points after it have no status. Rank 0 keeps
    FOLDER/sweep.json up to date. Collective; `InputError` where nothing can be run at all.
    """
    control = comm.Dup()
    with StopSignals() as signals, _lock(folder, control):
        points = on_first(control, lambda: plan(folder, grid, comm.size))
        run, said = _Run(comm, control, signals, command), _Said(points)
        for number, point in enumerate(points, 1):
            if comm.rank == 0:
                said.beginning(number, point)
            if not point.status:
                run.point(point)
                if comm.rank == 0:
                    said.end(point)
                    write_summary(folder, points)
            if point.status in STOPPED:
                break
        if comm.rank == 0:
            write_summary(folder, points)
    control.Free()
    return points


class _Run:
    """What the points of a sweep have in common on this rank."""

    def __init__(
        self, comm: MPI.Intracomm, control: MPI.Intracomm, signals: StopSignals, command: str
    ):
        self.comm, self.control, self.signals, self.command = comm, control, signals, command
        self.cache = ProblemCache()

    def point(self, point: Point) -> None:
        """Run one point and note how it ended."""
        start = monotonic()
        try:
            setup = together(self.control, lambda: self._set_up(point))
        except InputError as error:
            if not error.agreed:
                raise
            point.end("skipped", str(error), monotonic() - start)
            return
        log = Path(point.log)
        every = setup.experiment.run.log_every
        resume = on_first(self.control, lambda: resumable(log, setup.identity, every))
        output = Output(log, not resume, resume, self.command)
        end = run_rounds(setup, output, self.signals)
        point.end(end.status, seconds=monotonic() - start)

    def _set_up(self, point: Point) -> Setup:
        return Setup(parse(tomllib.loads(point.config)), self.comm, self.cache)


def counts(points: list[Point]) -> str:
    """How many points ended how, in words."""
    ended = Counter(point.status or "not run" for point in points)
    before = sum(point.before for point in points)
    words = [f"{number} {status}" for status, number in ended.items()]
    return f"{len(points)} points: {', '.join(words)}; {before} of them complete before"


class _Said:
    """What rank 0 says of each point, a reason in full once."""

    def __init__(self, points: list[Point]):
        self.points = len(points)
        self.waiting = sum(not point.status for point in points)
        self.ran, self.start = 0, monotonic()
        self.reasons: set[str] = set()

    def beginning(self, number: int, point: Point) -> None:
        """The point's line, with its end where that is known."""
        ended = f": {point.status}" if point.status else ""
        why = " before" if point.before else self._why(point)
        name = Path(point.log).name or point.name
        left = "" if point.status else self._left()
        print(f"[{number}/{self.points}] {name}{ended}{why}{left}", flush=True)

    def _left(self) -> str:
        """Time left, if the points to come take as long as those that ran."""
        if not self.ran:
            return ""
        seconds = (monotonic() - self.start) / self.ran * (self.waiting - self.ran)
        return f", about {duration(seconds)} left"

    def end(self, point: Point) -> None:
        """A line below for what never ran, which has no other."""
        self.ran += 1
        if point.status == "skipped":
            print(f"  skipped{self._why(point)}", flush=True)

    def _why(self, point: Point) -> str:
        if not point.reason:
            return ""
        known = point.reason in self.reasons
        self.reasons.add(point.reason)
        return ", for the same reason" if known else f": {point.reason}"


@contextmanager
def _lock(folder: Path, control: MPI.Intracomm) -> Iterator[None]:
    """Two sweeps at a time would write the same logs; the system frees the lock of a killed one."""
    file = None

    def take() -> None:
        nonlocal file
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file = (folder / ".lock").open("w")
        except OSError as error:
            raise InputError(f"{folder}: cannot be written: {error.strerror}") from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise InputError(f"{folder}: another sweep is running there; wait for it") from None
        except OSError:
            pass  # a file system without locks

    on_first(control, take)
    try:
        yield
    finally:
        if file is not None:
            file.close()
