"""How long the points of a sweep still take, from their sizes and from those that have run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from mpisim.runs.sweep.lines import time_left


class Pace:
    """What is left of the points with these ``sizes`` {number: size}.

    Points of one size take as long, on average, as those of that size that have run; others take as
    long as their sizes say. ``later`` : the size of later groups
    """

    def __init__(self, sizes: Mapping[int, float], later: float):
        self._waiting, self._later = dict(sizes), later
        self._ran: dict[float, list[float]] = defaultdict(list)  # {size: seconds}

    def ran(self, number: int, seconds: float) -> None:
        """A point has ended."""
        self._ran[self._waiting.pop(number)].append(seconds)

    def left(self, elapsed: float) -> str:
        """The time left as text, ``elapsed`` seconds after the start; empty if none has ended."""
        ended = sum(size * len(times) for size, times in self._ran.items())
        whole = sum(map(sum, self._ran.values()))
        known = {size: sum(times) / len(times) for size, times in self._ran.items()}
        sizes = self._waiting.values()
        rest = sum(known[s] * ended / whole if whole and s in known else s for s in sizes)
        return time_left(elapsed, ended, rest, self._later)
