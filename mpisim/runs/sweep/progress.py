"""What a sweep prints: a line for each point, one line of progress, and the time left."""

from __future__ import annotations

import io
import math
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any, TextIO

from mpisim.core.errors import InputError
from mpisim.methods.method_table import needs_compressor
from mpisim.runs import labels
from mpisim.runs.progress import StatusLine, duration
from mpisim.runs.stop import COMPLETE
from mpisim.runs.sweep.points import Claims, Point, write_summary

SUMMARY_SECONDS = 1.0  # between two versions of the summary, at least, while runs overlap
SUMMARY_SHARE = 0.1  # of the time that writing it takes at most
# Method and compressor come first in a name; the others are no setting of the run.
ELSEWHERE = ("method.name", "compressor.name", "title", "plugin")
LAST = ("method.stepsize", "run.seed")


class PointLines:
    """Prints a line for each point, on rank 0, unless ``quiet``; a reason is given in full once."""

    def __init__(self, points: Sequence[Point], quiet: bool = False):
        self.points, self.quiet = points, quiet
        self._begun: set[int] = set()
        self._reasons: set[str] = set()

    def begins(self, number: int, left: str) -> None:
        """A point begins to run, and prints its own progress; ``left``: the time left, as text."""
        self._begun.add(number)
        self._print(number, left)

    def ended(self, number: int) -> None:
        """A point has ended; after `begins` a run has printed so, unless it was skipped."""
        point = self.points[number]
        how = f" in {duration(point.seconds)}" if point.seconds is not None else ""
        if point.before:  # the line at the end counts them
            return
        if point.reason:
            how = ", for the same reason" if point.reason in self._reasons else f": {point.reason}"
            self._reasons.add(point.reason)
        if number not in self._begun:
            self._print(number, f": {point.status}{how}")
        elif point.reason:
            self.say(f"  {point.status}{how}")

    def _print(self, number: int, text: str) -> None:
        self.say(f"[{number + 1}/{len(self.points)}] {name_of(self.points[number])}{text}")

    def say(self, text: str) -> None:
        """Print a line."""
        if not self.quiet:
            print(text, flush=True)


class Board:
    """Follows points of a sweep in one of its processes: statuses, summary, progress.

    The points get their status here, as soon as it is known.

    points : those that the groups of ``claims`` run
    live : whether to show a line of progress; else the runs, one at a time, show their own
    """

    def __init__(
        self,
        folder: Path,
        points: Sequence[Point],
        claims: Claims,
        lines: PointLines,
        group: str,
        live: bool = True,
        stream: TextIO | None = None,
        clock: Callable[[], float] = monotonic,
    ):
        self.folder, self.claims, self.lines, self.group = folder, claims, lines, group
        self.live, self._clock = live, clock
        self._pace = Pace(points)
        self._ended: set[int] = set()
        self._unsaved = False
        self._begin = clock()
        hidden = io.StringIO() if lines.quiet else stream
        self._line = StatusLine(hidden, None, self._begin)
        self._due = -math.inf  # when the summary is to be written next

    def begins(self, number: int, more: int = 0) -> None:
        """A point begins that is to print its own progress, with ``more`` beside it."""
        beside = f" together with {more} more" if more else ""
        self.lines.begins(number, beside + self._pace.left(self._clock() - self._begin))

    def update(self) -> int:
        """Take what has ended since the last call, and show the line if it is due; returns 0."""
        new, now = self.claims.ended(self._ended), self._clock()
        if new and self.live:
            self._line.erase()
        for number, outcome in new.items():
            self.lines.points[number].end(outcome)
            self._pace.ran(number, outcome.seconds)
            self.lines.ended(number)
        self._ended |= new.keys()
        self._unsaved |= bool(new)
        if self._unsaved and now > self._due:
            begin = monotonic()
            with suppress(InputError):  # another sweep is writing it; there is a next time
                write_summary(self.folder, self.lines.points, patience=0.0)
                cost = monotonic() - begin  # of many points, a second
                self._due = now + max(cost / SUMMARY_SHARE, SUMMARY_SECONDS * self.live)
                self._unsaved = False
        if self.live and now >= self._line.due:
            self._line.show(self.text(now), now)
        return 0

    def close(self) -> None:
        """All groups have ended."""
        self.update()
        if self.live:
            self._line.erase()
        write_summary(self.folder, self.lines.points)

    def text(self, now: float) -> str:
        """Points done, running, failed, and the time left."""
        statuses = Counter(point.status for point in self.lines.points)
        done = sum(statuses[status] for status in COMPLETE)
        running = len(self.claims.taken() - self._ended)
        diverged = f" ({statuses['diverged']} diverged)" if statuses["diverged"] else ""
        group = f"{self.group}: " if self.group else ""
        text = f"{group}{done} of {statuses.total()} points done{diverged}, {running} running"
        return f"{text}, {statuses['skipped']} failed{self._pace.left(now - self._begin)}"


class Pace:
    """What is left of some points.

    Points of one size take as long, on average, as those of that size that have run; others take as
    long as their sizes say.
    """

    def __init__(self, points: Sequence[Point]):
        self._waiting = {point.number: point.size for point in points}
        self._ran: dict[float, list[float]] = defaultdict(list)  # {size: seconds}

    def ran(self, number: int, seconds: float | None) -> None:
        """A point has ended; None: another sweep ran it."""
        size = self._waiting.pop(number)
        if seconds is not None:
            self._ran[size].append(seconds)

    def left(self, elapsed: float) -> str:
        """``, about 3 min 05 s left``, ``elapsed`` seconds after the start; empty at first."""
        ended = sum(size * len(times) for size, times in self._ran.items())
        if not ended:
            return ""
        total = sum(map(sum, self._ran.values()))
        means = {size: sum(times) / len(times) for size, times in self._ran.items()}
        waiting = self._waiting.values()
        rest = sum(means[s] * ended / total if total and s in means else s for s in waiting)
        return f", about {duration(elapsed / ended * rest)} left"


def name_of(point: Point) -> str:
    """``MARINA RandK k=10 seed 3``; the log of a point that is no experiment."""
    if not point.config:
        return Path(point.log).name or point.name
    config = tomllib.loads(point.config)
    words = [labels.method(config["method"]["name"])]
    if needs_compressor(config["method"]["name"]):
        words.append(labels.compressor({"name": config["compressor"]["name"]}))
    varied = {key: v for key, v in point.settings.items() if key not in ELSEWHERE}
    # parameters first, in their order; then the step, and the seed
    keys = sorted(varied, key=lambda key: LAST.index(key) + 1 if key in LAST else 0)
    return " ".join([*words, *(_word(key, varied[key]) for key in keys)])


def _word(key: str, value: Any) -> str:
    """A setting that varies: ``k=10``, ``seed 3``, ``4 × theory``, ``mushrooms``."""
    if isinstance(value, dict) and "theory" in value:
        return labels.number(value)
    if key == "method.stepsize":
        return "1 × theory" if value == "theory" else f"step {labels.number(value)}"
    if key == "run.seed":
        return f"seed {value}"
    if key == "problem.data":
        return Path(str(value)).name
    return f"{key.partition('.')[2]}={labels.number(value)}"
