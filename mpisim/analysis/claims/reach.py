"""Fixed targets: which of them a run reached, at what cost, and above which noise floor."""

from __future__ import annotations

import dataclasses
from functools import cached_property

import numpy as np

from mpisim.analysis.curves import Axis
from mpisim.runs.log.reader import Log

Targets = tuple[float, ...]  # shares of the value at the start, falling
DECADES: Targets = tuple(10.0**-j for j in range(1, 31))
# For a loss whose minimum is far above 0.
TENTHS: Targets = tuple(j / 10 for j in range(9, 0, -1))
TAIL = 4  # the last quarter of the rows shows whether a run oscillates
FEWEST = 16  # rows; fewer show nothing
SHARE = 0.9  # of the rows of a tail: the others are not what decides


@dataclasses.dataclass(frozen=True)
class Reach:
    """A run's way down: ``y`` over the cost ``x``."""

    log: Log
    x: Axis
    y: Axis

    @cached_property
    def values(self) -> np.ndarray:
        """y of each row, shape (rows,)."""
        return self.y.values(self.log)

    @cached_property
    def budget(self) -> float:
        """What the whole run spent."""
        return float(self.x.values(self.log)[-1])

    @cached_property
    def floor(self) -> float:
        """The noise floor, 0 for a run that still falls when it ends.

        A run oscillates if the two halves of its last quarter overlap, but for a tenth of the rows
        of each: noise makes a falling run overlap where they meet. Its floor is the level that nine
        in ten of the rows of that quarter are at or below.
        """
        rows = len(self.values)
        if rows < FEWEST:
            return 0.0
        tail = self.values[-(rows // TAIL) :]
        first, second = tail[: len(tail) // 2], tail[len(tail) // 2 :]
        falls = np.quantile(second, SHARE) <= np.quantile(first, 1 - SHARE)
        return 0.0 if falls else float(np.quantile(tail, SHARE))

    def cost(self, level: float) -> float:
        """x in the first row with y <= level.

        Infinite where the run was cut off before, NaN where the level is below the noise floor.
        """
        if level < self.floor:
            return float("nan")
        below = np.flatnonzero(self.values <= level)
        return float(self.x.values(self.log)[below[0]]) if below.size else float("inf")
