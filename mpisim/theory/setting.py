"""What a theorem needs to know, and what it gives."""

from __future__ import annotations

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True)
class Setting:
    """Constants of a problem and a compressor, in the papers' letters.

    n workers, dimension d; L_i (n,), L (of f: L_-), L_plus, L_pm as in the PermK paper;
    omega and alpha of the compressor, None where it is biased or not contractive.
    """

    n: int
    d: int
    convex: bool
    L_i: np.ndarray
    L: float
    L_plus: float
    L_pm: float
    omega: float | None
    alpha: float | None

    @property
    def L_max(self) -> float:
        """max_i L_i."""
        return float(self.L_i.max())

    @property
    def L_rms(self) -> float:
        """sqrt((1/n) sum_i L_i^2)."""
        return float(np.sqrt(np.mean(self.L_i**2)))


@dataclasses.dataclass(frozen=True)
class Step:
    """A step size and the theorem it comes from."""

    gamma: float
    source: str
