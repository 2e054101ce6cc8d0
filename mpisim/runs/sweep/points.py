"""The points of a sweep, its summary file, which can be read without MPI, and claims of points.

A group of ranks claims a point by making a file that did not exist. This needs no process that
hands out work, and works across hosts that share the folder. Several sweeps of one folder have
claims of their own; what keeps them apart is the lock of each log, which a group holds while it
runs the point, and which dies with it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple

from mpisim.core.errors import InputError
from mpisim.core.files import FileLock, Locked, make_folder, read_json, write_json, writing
from mpisim.core.machine import reading_budget
from mpisim.core.schema import build
from mpisim.runs.log.writer import require_text
from mpisim.runs.stop import COMPLETE, EXIT_CODES, STOPPED

SUMMARY = "sweep.json"
PATIENCE_SECONDS = 60.0  # how long a sweep waits for the lock of its folder
NAME = ".side-by-side"  # and a token
TAKEN, ENDED = ".taken", ".json"
STOP, LOCK = "stop", "lock"
SHA256 = re.compile(r"sha256:(\w+)")  # in what a log says of its problem
_using = partial(writing, what="cannot be used")


class Shard(NamedTuple):
    """The points whose number in the plan, modulo ``parts``, is ``part`` - 1."""

    part: int = 1
    parts: int = 1

    def has(self, number: int) -> bool:
        """Whether the point with this number, from 0 on, is in the shard."""
        return number % self.parts == self.part - 1


class Spread(NamedTuple):
    """How points are dealt to processes.

    ranks_per_run : of the job, for a point that does not say how many ranks it needs
    jobs : processes that run points without mpirun; 0: the ranks of the job do
    shard : the points that this command runs; others are left to other commands
    separate : whether each point runs for itself; else those that differ in step or seed
        alone advance together where they can (`mpisim.runs.ensemble`)
    """

    ranks_per_run: int = 1
    jobs: int = 0
    shard: Shard = Shard()
    separate: bool = False


ONE_RANK = Spread()


class Outcome(NamedTuple):
    """How a run ended: status, why it was skipped, seconds, and whether it had ended before.

    stamp : of its complete log, see `Point`
    """

    status: str
    reason: str = ""
    seconds: float | None = None
    before: bool = False
    stamp: str = ""


@dataclasses.dataclass
class Point:
    """One point of a grid.

    name : method-compressor-data-hash, the name of the log without ``.h5``; no hash where the
        point is not an experiment
    log : the path of the log; empty where there can be none
    settings : {TABLE.KEY: value} of the keys that vary over the grid
    config : the resolved experiment as TOML; empty where the point is not an experiment
    status : done, diverged, skipped, interrupted, terminated; empty before the point has run
    exit_code : what `mpisim run` would exit with; None before the point has run
    reason : why the point was skipped
    seconds : from set-up to the end of the log; None if no sweep has timed the run
    before : the log was complete when the sweep came to the point
    ranks : that it needs; None for as many as the sweep gives to a run
    earlier : the log with a smaller budget that it goes on from; empty where it starts anew
    stamp : of the complete log, as it was written or its rows were last compared with their
        digest; see `stamp_of`

    These are known to the sweep that runs the point, and not in the summary:

    number : of the point in the plan, from 0 on
    size : of the run, relative to others: rounds x (a constant + workers x dimension)
    bytes : that the run takes at most, as far as this is known; 0 if it is not
    problem : equal for points with the same problem
    alike : equal for points that can advance together; empty for one that cannot
    """

    name: str
    log: str
    settings: dict[str, Any]
    config: str = dataclasses.field(repr=False)
    status: str = ""
    exit_code: int | None = None
    reason: str = ""
    seconds: float | None = None
    before: bool = False
    ranks: int | None = None
    earlier: str = ""
    stamp: str = dataclasses.field(default="", repr=False)
    number: int = dataclasses.field(default=0, compare=False, repr=False)
    size: float = dataclasses.field(default=0.0, compare=False, repr=False)
    bytes: float = dataclasses.field(default=0.0, compare=False, repr=False)
    problem: tuple[Any, ...] = dataclasses.field(default=(), compare=False, repr=False)
    alike: str = dataclasses.field(default="", compare=False, repr=False)

    def end(self, outcome: Outcome) -> None:
        """Record how the point ended."""
        self.status, self.reason, self.seconds, self.before, self.stamp = outcome
        self.exit_code = EXIT_CODES[outcome.status]


SAVED = [field.name for field in dataclasses.fields(Point) if field.compare]


def stamp_of(sha256: str, code: Mapping[str, str], data: Sequence[str]) -> str:
    """The ``sha256`` of a log, if any, of the code that wrote its rows, and of its data."""
    texts = (json.dumps(one, sort_keys=True).encode() for one in (code, list(data)))
    return " ".join([sha256, *(hashlib.sha256(text).hexdigest() for text in texts)] * bool(sha256))


def digests_of(log: Mapping[str, Any]) -> list[str]:
    """The sha256 of what the problem of a log read, from the log's attributes."""
    return SHA256.findall(str(log.get("problem")))


def sha256_of(log: str) -> str:
    """The sha256 of a file; empty where there is none, or more than the command may read.

    Its times are not asked: two edits within a tick of the file system's clock have the same.
    """
    with suppress(OSError), reading_budget() as budget:
        status = os.stat(log)
        if stat.S_ISREG(status.st_mode) and status.st_size <= budget.bytes:
            with open(log, "rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
    return ""


def exit_code(points: Sequence[Point]) -> int:
    """The exit code of a sweep: 0, or that of the run which a signal stopped."""
    return next((EXIT_CODES[p.status] for p in points if p.status in STOPPED), 0)


def counts(points: Sequence[Point]) -> str:
    """How many points ended with which status, as text."""
    ended = Counter(point.status or "not run" for point in points)
    before = sum(point.before for point in points)
    words = [f"{number} {status}" for status, number in ended.items()]
    many = "point" if len(points) == 1 else "points"
    return f"{len(points)} {many}: {', '.join(words)}; {before} of them complete before"


@contextmanager
def folder_lock(folder: Path, patience: float | None = None) -> Iterator[None]:
    """Hold FOLDER/.lock, which sweeps have for a moment while they write what they share.

    Raises `InputError` where another process has it for ``patience`` seconds (default: a minute).
    """
    require_text(folder)
    end = monotonic() + (PATIENCE_SECONDS if patience is None else patience)
    with ExitStack() as stack:
        while True:
            try:
                with writing(folder, InputError):
                    make_folder(folder)
                    stack.enter_context(FileLock(lock := folder / ".lock"))
                break
            except Locked as holder:
                if monotonic() >= end:
                    who = f" ({holder})" if str(holder) else ""
                    raise InputError(f"{lock}: another sweep holds this lock{who}") from None
            sleep(0.02)
        yield


def write_summary(folder: Path, points: Sequence[Point], patience: float | None = None) -> None:
    """Write FOLDER/sweep.json, with what other sweeps have written there meanwhile.

    Whole or not at all; raises as `folder_lock`, and `OutputError` where it cannot be written.
    """

    def prefers(point: Point, other: Point) -> bool:
        if point.before:  # the other sweep knows how long it took
            return other.status == point.status and other.seconds is not None
        return not point.status or (point.status == "skipped" and other.status in COMPLETE)

    with folder_lock(folder, patience):
        merge_summary(folder, points, prefers)


def merge_summary(folder: Path, points: Sequence[Point], prefers: Callable[..., bool]) -> None:
    """Write the summary; where ``prefers(point, other)``, with the end of the file's ``other``.

    The caller holds the `folder_lock`.
    """
    others: dict[str, Point] = {}
    with suppress(InputError):  # no sweep has run there
        others = {other.name: other for other in read_summary(folder) if other.status}
    merged = []
    for point in points:
        ended = other if (other := others.get(point.name)) and prefers(point, other) else point
        values = {name: getattr(ended, name) for name in SAVED}
        values["stamp"] = point.stamp or ended.stamp
        merged.append(values | {"log": point.log, "settings": point.settings})
    write_json(folder / SUMMARY, {"points": merged})


def read_summary(folder: Path) -> list[Point]:
    """The points in FOLDER/sweep.json; `InputError` where it is missing or damaged."""

    def points(content: Any) -> list[Point]:
        return [build(Point, point, SUMMARY) for point in content["points"]]

    other = "not the summary of a sweep; run the sweep again"
    return read_json(folder / SUMMARY, points, other, "; run the sweep first")


# claims


@contextmanager
def new_claims(folder: Path) -> Iterator[Claims]:
    """Claims that are removed at the end. What killed sweeps have left is removed now."""
    claims = Claims(folder / f"{NAME}-{secrets.token_hex(8)}")
    with _using(claims.folder), folder_lock(folder):
        claims.folder.mkdir()
        lock = FileLock(claims.folder / LOCK)
        lock.__enter__()
        if not _is_free(claims.folder):  # else the file system has no locks, which tell of a kill
            for other in filter(_is_free, folder.glob(f"{NAME}*")):
                shutil.rmtree(other, ignore_errors=True)
    try:
        yield claims
    finally:
        shutil.rmtree(claims.folder, ignore_errors=True)
        lock.__exit__()


def left_by_killed(folder: Path) -> bool:
    """Whether there are claims of other sweeps, which were killed or run."""
    return any(folder.glob(f"{NAME}-*"))


class Claims:
    """The claims of one sweep. All methods raise `OutputError` where files cannot be written."""

    def __init__(self, folder: Path):
        self.folder = folder

    def take(self, number: int) -> bool:
        """Claim a point; False if another group has it."""
        with _using(self.folder), suppress(FileExistsError):
            (self.folder / f"{number}{TAKEN}").touch(exist_ok=False)
            return True
        return False

    def taken(self) -> set[int]:
        """The points that are running or have run."""
        return self._numbers(TAKEN)

    def end(self, number: int, outcome: Outcome) -> None:
        """Record how a point ended."""
        write_json(self.folder / f"{number}{ENDED}", outcome)

    def ended(self, but: Collection[int]) -> dict[int, Outcome]:
        """How points have ended, other than those in ``but``."""
        new = sorted(self._numbers(ENDED).difference(but))
        with _using(self.folder):
            texts = {n: (self.folder / f"{n}{ENDED}").read_text(encoding="utf-8") for n in new}
        return {number: Outcome(*json.loads(text)) for number, text in texts.items()}

    def stop(self, status: str) -> None:
        """Tell all groups to stop at the end of a round, as the run did that has this status."""
        write_json(self.folder / STOP, EXIT_CODES[status] - 128)

    def stopped(self) -> int:
        """The signal that a group has received; 0: none."""
        with _using(self.folder), suppress(FileNotFoundError):
            return int(json.loads((self.folder / STOP).read_text(encoding="utf-8")))
        return 0

    def _numbers(self, suffix: str) -> set[int]:
        with _using(self.folder):
            names = [path.name for path in self.folder.iterdir()]
        stems = (name.removesuffix(suffix) for name in names if name.endswith(suffix))
        return {int(stem) for stem in stems if stem.isdigit()}


def _is_free(folder: Path) -> bool:
    """Whether no sweep has the claims in this folder."""
    with suppress(Locked, OSError), FileLock(folder / LOCK):
        return True
    return False
