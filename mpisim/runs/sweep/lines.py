"""The lines about points that a sweep prints."""

from __future__ import annotations

from collections.abc import Sequence

from mpisim.runs.progress import duration
from mpisim.runs.sweep.names import name_of
from mpisim.runs.sweep.points import Point


def time_left(seconds: float, ended: float, rest: float, later: float) -> str:
    """``, about 3 min 05 s left``, and with later groups, if all take as long as their sizes say.

    seconds : since the start, in which points of size ``ended`` have run
    rest, later : the sizes of the waiting points, of this group and of later ones
    """
    if not ended:
        return ""
    pace = seconds / ended
    whole = f", {duration(pace * (rest + later))} with all groups" if later else ""
    return f", about {duration(pace * rest)} left{whole}"


def forecast(seconds: float, runs: int, at_once: int = 1) -> str:
    """``about 7 min 18 s for 3 runs, 2 at a time``."""
    groups = f", {at_once} at a time" if at_once > 1 and runs > 1 else ""
    return f"about {duration(seconds)} for {runs} run{'s' * (runs != 1)}{groups}"


class PointLines:
    """Prints a line for each point, on rank 0; a reason is given in full once."""

    def __init__(self, points: Sequence[Point]):
        self.points = points
        self._reasons: set[str] = set()

    def begins(self, number: int, left: str) -> None:
        """A point begins to run; ``left``: the time left, as text."""
        self._print(number, left)

    def did_not_run(self, number: int) -> None:
        """A second line for a point that began, but could not run; a run prints its own."""
        point = self.points[number]
        if point.status == "skipped":
            print(f"  skipped{self._why(point)}", flush=True)

    def ended_before(self) -> None:
        """The points that have ended before any runs."""
        for number, point in enumerate(self.points):
            if point.status:
                before = " before" if point.before else self._why(point)
                self._print(number, f": {point.status}{before}")

    def ended(self, number: int) -> None:
        """A point that ran beside others has ended."""
        point = self.points[number]
        seconds = f" in {duration(point.seconds)}" if point.seconds is not None else ""
        why = self._why(point) if point.reason else seconds
        self._print(number, f": {point.status}{why}")

    def _print(self, number: int, text: str) -> None:
        name = name_of(self.points[number])
        print(f"[{number + 1}/{len(self.points)}] {name}{text}", flush=True)

    def _why(self, point: Point) -> str:
        if not point.reason:
            return ""
        known = point.reason in self._reasons
        self._reasons.add(point.reason)
        return ", for the same reason" if known else f": {point.reason}"
