"""Follows points that run side by side: statuses, the summary, and one line of progress."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TextIO

from mpisim.runs.progress import duration
from mpisim.runs.status import COMPLETE
from mpisim.runs.status_line import StatusLine
from mpisim.runs.sweep.claims import Claims
from mpisim.runs.sweep.execute import Sweep
from mpisim.runs.sweep.lines import PointLines, forecast
from mpisim.runs.sweep.order import Work
from mpisim.runs.sweep.pace import Pace
from mpisim.runs.sweep.points import write_summary

SUMMARY_SECONDS = 1.0  # between two versions of the summary
LONG = 60.0  # seconds; what takes longer is told before


class Board:
    """Follows the ``works`` of a sweep, in one of its processes.

    Their points get their status here, as soon as it is known.
    """

    def __init__(
        self,
        sweep: Sweep,
        works: Sequence[Work],
        claims: Claims,
        lines: PointLines,
        stream: TextIO | None = None,
        interactive: bool | None = None,
        clock: Callable[[], float] = monotonic,
    ):
        self.sweep, self.claims, self.lines, self._clock = sweep, claims, lines, clock
        self._sizes = {work.number: work.size for work in works}
        self._pace = Pace(self._sizes, sweep.group.later)
        self._ended: set[int] = set()
        self._expected: dict[int, float] = {}  # seconds of the runs that have begun
        self._told = False
        self._begin = clock()
        self._line = StatusLine(stream, interactive, self._begin)
        self._saved = -SUMMARY_SECONDS

    def update(self) -> int:
        """Take what has ended since the last call, and show the line if it is due; returns 0."""
        new, now = self.claims.ended(self._ended), self._clock()
        if new:
            self._line.erase()
        for number, outcome in new.items():
            self.sweep.points[number].end(*outcome)
            self._pace.ran(number, outcome.seconds)
            self.lines.ended(number)
        self._ended |= new.keys()
        if not self._told:
            self._tell()
        if new and now > self._saved + SUMMARY_SECONDS:
            write_summary(self.sweep.folder, self.sweep.points)
            self._saved = now
        if now >= self._line.due:
            self._line.show(self.text(now), now)
        return 0

    def close(self) -> None:
        """All groups have ended."""
        self.update()
        self._line.erase()
        write_summary(self.sweep.folder, self.sweep.points)
        self.sweep.report_left()

    def text(self, now: float) -> str:
        """Points done, running, failed, and the time left."""
        statuses = Counter(point.status for point in self.sweep.points)
        done = sum(statuses[status] for status in COMPLETE)
        running = len(self.claims.taken() - self._ended)
        diverged = f" ({statuses['diverged']} diverged)" if statuses["diverged"] else ""
        group = f"{self.sweep.group.text}: " if self.sweep.group.text else ""
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
