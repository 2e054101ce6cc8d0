"""What a theorem needs to know, and what it gives."""

from __future__ import annotations

import dataclasses

import numpy as np

from mpisim.compressors.base import Compressor
from mpisim.problems.base import Problem
from mpisim.theory.smoothness import Constants


@dataclasses.dataclass(frozen=True)
class Setting:
    """A problem and a compressor as the theorems see them, in the papers' letters.

    n workers, dimension d; ``c``: smoothness constants; omega and alpha of the compressor, None
    where it is biased or not contractive; zeta: its expected density.
    """

    n: int
    d: int
    convex: bool
    c: Constants
    omega: float | None
    alpha: float | None
    zeta: float

    @property
    def L_max(self) -> float:
        """max_i L_i."""
        return float(self.c.L_i.max())

    @property
    def L_rms(self) -> float:
        """MARINA's L: sqrt((1/n) sum_i L_i^2)."""
        return float(np.sqrt(np.mean(self.c.L_i**2)))

    @property
    def cal_L_rms(self) -> float:
        """MARINA's calligraphic L: sqrt((1/n) sum_i cal-L_i^2)."""
        return float(np.sqrt(np.mean(self.c.cal_L_i**2)))


@dataclasses.dataclass(frozen=True)
class Step:
    """A step size and the theorem it comes from."""

    gamma: float
    source: str


def setting_of(c: Constants, problem: Problem, compressor: Compressor) -> Setting:
    """The setting of a loaded problem with constants ``c`` and a bound compressor."""
    omega, alpha, zeta = compressor.omega, compressor.alpha, compressor.density
    return Setting(problem.n, problem.d, problem.convex, c, omega, alpha, zeta)
