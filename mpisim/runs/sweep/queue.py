"""Which point a group of ranks takes next, and how the points of all groups ended.

A group claims a point by making a file that did not exist. This needs no process that hands out
work, and works across hosts that share the folder. Several sweeps of one folder have claims of
their own; what keeps them apart is the lock of each log, which a group holds while it runs the
point, and which dies with it.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from mpisim.core.errors import InputError
from mpisim.core.files import FileLock, Locked, write_json, writing
from mpisim.core.machine import gigabytes
from mpisim.runs.log.writer import lock_of
from mpisim.runs.resume import nothing
from mpisim.runs.stop import EXIT_CODES
from mpisim.runs.sweep.plan import completed
from mpisim.runs.sweep.points import Outcome, Point, folder_lock

NAME = ".side-by-side"  # and a token
TAKEN, EXPECTED, ENDED = ".taken", ".expected", ".json"
STOP, LOCK = "stop", "lock"
TOGETHER, TOGETHER_BYTES = 32, 1 << 28  # that advance together at most: points, bytes of all
_using = partial(writing, what="cannot be used")


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
        with _using(self.folder):
            try:
                (self.folder / f"{number}{TAKEN}").touch(exist_ok=False)
            except FileExistsError:
                return False
        return True

    def taken(self) -> set[int]:
        """The points that are running or have run."""
        return self._numbers(TAKEN)

    def expect(self, number: int, seconds: float) -> None:
        """Record how long a point will take, when it has rehearsed."""
        write_json(self.folder / f"{number}{EXPECTED}", seconds)

    def expected(self, but: Collection[int]) -> dict[int, float]:
        """How long points will take, other than those in ``but``."""
        return self._read(EXPECTED, but)

    def end(self, number: int, outcome: Outcome) -> None:
        """Record how a point ended."""
        write_json(self.folder / f"{number}{ENDED}", outcome)

    def ended(self, but: Collection[int]) -> dict[int, Outcome]:
        """How points have ended, other than those in ``but``."""
        return {number: Outcome(*value) for number, value in self._read(ENDED, but).items()}

    def stop(self, status: str) -> None:
        """Tell all groups to stop at the end of a round, as the run did that has this status."""
        write_json(self.folder / STOP, EXIT_CODES[status] - 128)

    def stopped(self) -> int:
        """The signal that a group has received; 0: none."""
        with _using(self.folder), suppress(FileNotFoundError):
            return int(json.loads((self.folder / STOP).read_text(encoding="utf-8")))
        return 0

    def _read(self, suffix: str, but: Collection[int]) -> dict[int, Any]:
        new = sorted(self._numbers(suffix).difference(but))
        with _using(self.folder):
            texts = {n: (self.folder / f"{n}{suffix}").read_text(encoding="utf-8") for n in new}
        return {number: json.loads(text) for number, text in texts.items()}

    def _numbers(self, suffix: str) -> set[int]:
        with _using(self.folder):
            names = [path.name for path in self.folder.iterdir()]
        stems = (name.removesuffix(suffix) for name in names if name.endswith(suffix))
        return {int(stem) for stem in stems if stem.isdigit()}


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
                    if self._lock(one, lock, False):
                        stack.push(lock.pop_all())
                        further.append(one)
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
    """Whether it starts at round 0, as there is nothing of it."""
    return not point.earlier and nothing(Path(point.log))


def choose(
    points: Sequence[Point], taken: Collection[int], loaded: object, groups: int
) -> Point | None:
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


def limits(
    points: Sequence[Point], groups: int, available: float, say: Callable[[str], None] = print
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


def _is_free(folder: Path) -> bool:
    """Whether no sweep has the claims in this folder."""
    with suppress(Locked, OSError), FileLock(folder / LOCK):
        return True
    return False
