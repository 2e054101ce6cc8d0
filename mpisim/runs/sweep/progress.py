"""What a sweep prints: a line for each point, one line of progress, and the time left."""

from __future__ import annotations

import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any, TextIO

from mpisim.core.errors import InputError
from mpisim.methods.method_table import UNCOMPRESSED
from mpisim.runs import labels
from mpisim.runs.progress import StatusLine, duration
from mpisim.runs.signals import COMPLETE
from mpisim.runs.sweep.claims import Claims
from mpisim.runs.sweep.order import Work
from mpisim.runs.sweep.points import Group, Point, write_summary

SUMMARY_SECONDS = 1.0  # between two versions of the summary
LONG = 60.0  # seconds; what takes longer is told before
# Method and compressor come first in a name; the others are no setting of the run.
ELSEWHERE = ("method.name", "compressor.name", "title", "plugin")
LAST = ("method.stepsize", "run.seed")


class PointLines:
    """Prints a line for each point, on rank 0; a reason is given in full once."""

    def __init__(self, points: Sequence[Point]):
        self.points = points
        self._begun: set[int] = set()
        self._reasons: set[str] = set()

    def begins(self, number: int, left: str) -> None:
        """A point begins to run, and prints its own progress; ``left``: the time left, as text."""
        self._begun.add(number)
        self._print(number, left)

    def ended_before(self) -> None:
        """The points that have ended before any runs."""
        for number, point in enumerate(self.points):
            if point.status:
                self.ended(number)

    def ended(self, number: int) -> None:
        """A point has ended; after `begins` a run has printed so, unless it was skipped."""
        point = self.points[number]
        how = " before" if point.before else self._why(point)
        if number not in self._begun:
            self._print(number, f": {point.status}{how}")
        elif point.reason:
            print(f"  {point.status}{how}", flush=True)

    def _print(self, number: int, text: str) -> None:
        name = name_of(self.points[number])
        print(f"[{number + 1}/{len(self.points)}] {name}{text}", flush=True)

    def _why(self, point: Point) -> str:
        if not point.reason:
            return f" in {duration(point.seconds)}" if point.seconds is not None else ""
        again = point.reason in self._reasons
        self._reasons.add(point.reason)
        return ", for the same reason" if again else f": {point.reason}"


class Board:
    """Follows the ``works`` of a sweep in one of its processes: statuses, summary, progress.

    Their points get their status here, as soon as it is known.

    live : whether to show a line of progress; else the runs, one at a time, show their own
    """

    def __init__(
        self,
        folder: Path,
        works: Sequence[Work],
        claims: Claims,
        lines: PointLines,
        group: Group,
        live: bool = True,
        stream: TextIO | None = None,
        interactive: bool | None = None,
        clock: Callable[[], float] = monotonic,
    ):
        self.folder, self.claims, self.lines, self.group = folder, claims, lines, group
        self.live, self._clock = live, clock
        self._sizes = {work.number: work.size for work in works}
        self._pace = Pace(self._sizes, group.later)
        self._ended: set[int] = set()
        self._expected: dict[int, float] = {}  # seconds of the runs that have begun
        self._told = self._unsaved = False
        self._begin = clock()
        self._line = StatusLine(stream, interactive, self._begin)
        self._saved = -SUMMARY_SECONDS

    def begins(self, number: int) -> None:
        """A point begins that is to print its own progress."""
        self.lines.begins(number, self._pace.left(self._clock() - self._begin))

    def update(self) -> int:
        """Take what has ended since the last call, and show the line if it is due; returns 0."""
        new, now = self.claims.ended(self._ended), self._clock()
        if new and self.live:
            self._line.erase()
        for number, outcome in new.items():
            self.lines.points[number].end(*outcome)
            self._pace.ran(number, outcome.seconds)
            self.lines.ended(number)
        self._ended |= new.keys()
        self._unsaved |= bool(new)
        if not self._told:
            self._tell()
        if self._unsaved and (now > self._saved + SUMMARY_SECONDS or not self.live):
            with suppress(InputError):  # another sweep is writing it; there is a next time
                write_summary(self.folder, self.lines.points, patience=0.0)
                self._saved, self._unsaved = now, False
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
        group = f"{self.group.text}: " if self.group.text else ""
        text = f"{group}{done} of {statuses.total()} points done{diverged}, {running} running"
        return f"{text}, {statuses['skipped']} failed{self._left(now)}"

    def _tell(self) -> None:
        """Say how long all will take, when the first runs have rehearsed."""
        self._expected |= self.claims.expected(self._expected)
        running = self.claims.taken() - self._ended
        if not running or running - self._expected.keys():
            return
        self._told, seconds = True, self._seconds()
        if seconds > LONG:
            if self.live:
                self._line.erase()
            print(forecast(seconds, len(self._sizes), len(running)), flush=True)

    def _seconds(self) -> float:
        """How long all points take, if the others are like those that have rehearsed."""
        sizes = sum(self._sizes[number] for number in self._expected)
        total = sum(self._expected.values()) * sum(self._sizes.values()) / sizes
        return total / len(self._expected)

    def _left(self, now: float) -> str:
        """The time left, if points take as long as those that have run, or as they rehearsed."""
        if not self._ended and self._told:
            seconds = max(self._seconds() - (now - self._begin), 0.0)
            return f", about {duration(seconds)} left"
        return self._pace.left(now - self._begin)


class Pace:
    """What is left of the points with these ``sizes`` {number: size}.

    Points of one size take as long, on average, as those of that size that have run; others take as
    long as their sizes say. ``later`` : the size of later groups
    """

    def __init__(self, sizes: Mapping[int, float], later: float):
        self._waiting, self._later = dict(sizes), later
        self._ran: dict[float, list[float]] = defaultdict(list)  # {size: seconds}

    def ran(self, number: int, seconds: float | None) -> None:
        """A point has ended; None: another sweep ran it."""
        size = self._waiting.pop(number)
        if seconds is not None:
            self._ran[size].append(seconds)

    def left(self, elapsed: float) -> str:
        """The time left as text, ``elapsed`` seconds after the start; empty if none has ended."""
        ended = sum(size * len(times) for size, times in self._ran.items())
        total = sum(map(sum, self._ran.values()))
        means = {size: sum(times) / len(times) for size, times in self._ran.items()}
        sizes = self._waiting.values()
        rest = sum(means[s] * ended / total if total and s in means else s for s in sizes)
        return time_left(elapsed, ended, rest, self._later)


def time_left(seconds: float, ended: float, rest: float, later: float) -> str:
    """``, about 3 min 05 s left``, and with later groups, if all take as long as their sizes say.

    seconds : since the start, in which points of size ``ended`` have run
    rest, later : the sizes of the waiting points, of this group and of later ones
    """
    if not ended:
        return ""
    pace = seconds / ended
    groups = f", {duration(pace * (rest + later))} with all groups" if later else ""
    return f", about {duration(pace * rest)} left{groups}"


def forecast(seconds: float, runs: int, at_once: int = 1) -> str:
    """``about 7 min 18 s for 3 runs, 2 at a time``."""
    groups = f", {at_once} at a time" if at_once > 1 and runs > 1 else ""
    return f"about {duration(seconds)} for {runs} run{'s' * (runs != 1)}{groups}"


def name_of(point: Point) -> str:
    """``MARINA RandK k=10 seed 3``; the log of a point that is no experiment."""
    if not point.config:
        return Path(point.log).name or point.name
    config = tomllib.loads(point.config)
    words = [labels.method(config["method"]["name"])]
    if config["method"]["name"] not in UNCOMPRESSED:
        words.append(labels.compressor_title(config["compressor"]["name"]))
    varied = {key: v for key, v in point.settings.items() if key not in ELSEWHERE}
    words += [_word(key, varied[key]) for key in sorted(varied, key=_place)]
    return " ".join(words)


def _place(key: str) -> int:
    """Parameters first, in their order; then the step, and the seed."""
    return LAST.index(key) + 1 if key in LAST else 0


def _word(key: str, value: Any) -> str:
    """A setting that varies: ``k=10``, ``seed 3``, ``4 × theory``, ``mushrooms``."""
    if isinstance(value, dict) and "theory" in value:
        under = f" ({value['condition']})" if "condition" in value else ""
        return f"{labels.number(value['theory'])} × theory{under}"
    if key == "method.stepsize":
        return "1 × theory" if value == "theory" else f"step {labels.number(value)}"
    if key == "run.seed":
        return f"seed {value}"
    if key == "problem.data":
        return Path(str(value)).name
    return f"{key.partition('.')[2]}={labels.number(value)}"
