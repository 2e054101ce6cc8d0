"""The matrix T = tridiag(-1, 2, -1), (d, d), and sums of its multiples and of the identity's."""

from __future__ import annotations

import dataclasses
from math import pi

import numpy as np

from mpisim.core.numerics.functions import sine


def extreme_eigenvalues(d: int) -> tuple[float, float]:
    """The least and the largest of the eigenvalues 4 sin^2(j pi / (2 (d + 1))) of T."""
    s = sine(pi / (2 * (d + 1)))
    return 4 * s * s, 4 - 4 * s * s


def second_difference(x: np.ndarray) -> np.ndarray:
    """T x along the last axis: 2 x_j - x_{j-1} - x_{j+1}, with zeros beyond the ends."""
    out = 2 * x
    out[..., 1:] -= x[..., :-1]
    out[..., :-1] -= x[..., 1:]
    return out


@dataclasses.dataclass(frozen=True)
class Tridiagonal:
    """t_i T + added_i I + shared I; see `mpisim.core.protocols.Matrices`."""

    t: np.ndarray
    added: np.ndarray
    shared: float
    d: int

    def times(self, v: np.ndarray) -> np.ndarray:
        return self.t[:, None] * second_difference(v) + (self.added[:, None] + self.shared) * v

    def rows(self, i: int, start: int, stop: int) -> np.ndarray:
        out = np.zeros((stop - start, self.d))
        local, at = np.arange(stop - start), np.arange(start, stop)
        out[local, at] = 2 * self.t[i] + self.added[i] + self.shared
        below, above = at > 0, at < self.d - 1
        out[local[below], at[below] - 1] = -self.t[i]
        out[local[above], at[above] + 1] = -self.t[i]
        return out

    def diagonals(self) -> np.ndarray:
        return np.repeat((2 * self.t + self.added + self.shared)[:, None], self.d, axis=1)

    def norms(self) -> np.ndarray:
        low, high = extreme_eigenvalues(self.d)
        return np.maximum(low * self.t, high * self.t) + self.added + self.shared

    def without_shared(self) -> Tridiagonal:
        return dataclasses.replace(self, shared=0.0)
