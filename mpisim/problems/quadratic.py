"""Quadratic tasks whose heterogeneity is set by a noise scale (PermK paper, Algorithm 2).

All A_i = t_i T + c I share the eigenvectors of T = tridiag(-1, 2, -1), so a worker is two scalars
and every constant is a closed form. Nothing of size n x d is kept, and f, its gradient, and single
coordinates of the gradients cost O(d) and O(1).
"""

from __future__ import annotations

import dataclasses
from math import cos, isfinite, pi, sin, sqrt
from typing import ClassVar, Literal

import numpy as np
from numba import njit
from scipy.linalg import solve_banded
from scipy.special import ndtri

from mpisim.core.rng import Streams
from mpisim.core.schema import require
from mpisim.problems.base import Known, Problem, problem


@problem("quadratic")
class Quadratic(Problem):
    """f_i(x) = 1/2 x^T A_i x - b_i^T x, PermK paper, Algorithm 2.

    With nu_i^s = 1 + s xi_i^s, nu_i^b = s xi_i^b and independent standard normal xi (lines 2-6):
    A_i = t_i T + c I with t_i = nu_i^s / 4, b_i = t_i (nu_i^b - 1) e_1, and the same c for all such
    that lambda_min((1/n) sum A_i) = lambda (lines 7-11). x^0 = (sqrt(d), 0, ..., 0).

    dimension : d
    noise : s >= 0; 0 makes all f_i the same
    lambda : > 0; f is strongly convex with mu = lambda, the f_i need not be convex

    The scalars of all n workers are functions of (seed, worker), drawn on every rank: f is known
    without an exchange. A worker has one sample. Arithmetic is float64, results have ``dtype``.
    """

    workers: int | None = None
    dimension: int = 1000
    noise: float = 0.0
    lambda_: float = 1e-6

    explicit = True
    published: ClassVar[Literal["one", "mean", "sharp"]] = "mean"

    def check(self) -> None:
        n, d, s = self.workers, self.dimension, self.noise
        require(n is None or n >= 1, "problem.workers", n, "at least 1")
        require(d >= 1, "problem.dimension", d, "at least 1")
        require(isfinite(s) and s >= 0, "problem.noise", s, "finite and at least 0")
        positive = isfinite(self.lambda_) and self.lambda_ > 0
        require(positive, "problem.lambda", self.lambda_, "finite and above 0")

    def load(self, n: int, first: int, count: int, seed: int, dtype: np.dtype) -> None:
        """See `Problem.load`."""
        self.n, self.first, self.m, self.d = n, first, count, self.dimension
        self.seed, self.dtype = seed, np.dtype(dtype)
        words = Streams(seed).raw("quadratic task", 0, 0, n, 2)
        xi = ndtri(((words >> np.uint64(11)) + 0.5) * 2.0**-53)
        every_t = (1 + self.noise * xi[:, 0]) / 4
        every_b = every_t * (self.noise * xi[:, 1] - 1)
        self.mean_t, self.mean_b = float(every_t.mean()), float(every_b.mean())
        self.theta = extreme_eigenvalues(self.d)
        self.c = self.lambda_ - min(self.mean_t * theta for theta in self.theta)
        self.every_t, own = every_t, slice(first, first + count)
        self._last: tuple[np.ndarray, tuple[np.ndarray, np.ndarray]] | None = None
        self.t, self.b = every_t[own].copy(), every_b[own].copy()
        self.rows = np.ones(count, np.int64)
        self.identical = n == 1 or self.noise == 0
        least = np.min(self._ends(every_t))
        self.convex = bool(least >= 0)
        self.attained = "everywhere" if self.convex else "nowhere"
        made_of = f"d = {self.d}, noise = {self.noise:g}, lambda = {self.lambda_:g}"
        self.identity = f"quadratic task, {made_of}, seed = {seed}"

    @property
    def seeded(self) -> bool:
        return self.noise > 0

    def initial_point(self) -> np.ndarray:
        """(sqrt(d), 0, ..., 0)."""
        x = np.zeros(self.d, self.dtype)
        x[0] = sqrt(self.d)
        return x

    # one f_i at a time

    def losses(self, x: np.ndarray) -> np.ndarray:
        bend, norm = _forms(x.astype(np.float64, copy=False))
        return self.t * bend + self.c * norm - self.b * float(x[0])

    def gradients(self, x: np.ndarray) -> np.ndarray:
        out = np.empty((self.m, self.d), self.dtype)
        self.write_gradients(x, 0, out)
        return out

    def write_gradients(self, x: np.ndarray, first: int, out: np.ndarray) -> None:
        own = slice(first, first + len(out))
        _write(out, self.t[own], self.b[own], *self._common(x))

    def subtract_gradients(
        self, x: np.ndarray, first: int, less: np.ndarray, out: np.ndarray
    ) -> None:
        own = slice(first, first + len(out))
        _write_less(out, self.t[own], self.b[own], *self._common(x), less)

    def _common(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """T x and c x, float64, worked out once for all blocks of workers at the same x."""
        if self._last is None or not np.array_equal(self._last[0], x):
            wide = x.astype(np.float64)
            self._last = x.copy(), (second_difference(wide), self.c * wide)
        return self._last[1]

    def coordinates(self, x: np.ndarray, ptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
        values = np.empty(indices.size, self.dtype)
        x = x.astype(np.float64, copy=False)
        _write_coordinates(values, self.t, self.b, self.c, x, ptr, indices)
        return values

    def coordinate_changes(
        self, x: np.ndarray, y: np.ndarray, ptr: np.ndarray, indices: np.ndarray
    ) -> np.ndarray:
        values = np.empty(indices.size, self.dtype)
        x, y = x.astype(np.float64, copy=False), y.astype(np.float64, copy=False)
        _write_changes(values, self.t, self.b, self.c, x, y, ptr, indices)
        return values

    def losses_and_gradients(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.losses(x), self.gradients(x)

    def batch_gradients(self, x: np.ndarray, batch: np.ndarray) -> np.ndarray:
        """The gradients themselves, the one sample of each worker having number 0."""
        if batch.any():
            raise IndexError("a batch names a row that its worker does not have")
        return self.gradients(x)

    # f itself, and what is known of it

    def whole(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        x, gradient = x.astype(np.float64, copy=False), np.empty((1, self.d))
        t, b = np.array([self.mean_t]), np.array([self.mean_b])
        _write(gradient, t, b, second_difference(x), self.c * x)
        bend, norm = _forms(x)
        return self.mean_t * bend + self.c * norm - self.mean_b * float(x[0]), gradient[0]

    def minimum(self) -> tuple[np.ndarray, float]:
        bands = np.full((3, self.d), -self.mean_t)
        bands[1] = 2 * self.mean_t + self.c
        right = np.zeros(self.d)
        right[0] = self.mean_b
        x = solve_banded((1, 1), bands, right)
        return x, self.whole(x)[0]

    def _ends(self, t: np.ndarray) -> np.ndarray:
        """t_i theta + c for the extreme eigenvalues theta of T, shape (2, workers)."""
        return np.array(self.theta)[:, None] * t + self.c

    @property
    def known(self) -> Known:
        """See `known_of`; mu is lambda, exactly."""
        return dataclasses.replace(self.known_of(np.ones(self.n, bool)), mu=self.lambda_)

    def known_of(self, members: np.ndarray) -> Known:
        """Theorem 3: every A_i is t_i theta_j + c in one basis, so all are maxima over j.

        As functions of theta they are convex: the maximum is at one end.
        """
        t = self.every_t[members]
        ends, mean = self._ends(t), self._ends(t.mean(keepdims=True))
        return Known(
            L_i=np.abs(ends).max(axis=0),
            L=float(np.abs(mean).max()),
            L_plus=sqrt((ends**2).mean(axis=1).max()),
            L_pm=float(t.std()) * max(self.theta),
            mu=float(mean.min()),
        )

    def sample_norms(self) -> np.ndarray:
        return self.known.L_i[self.first : self.first + self.m]

    def published_norms(self) -> np.ndarray:
        """2 t_i + c + 2 |t_i| cos(pi / (d+1)): lambda_max(A_i), also where -lambda_min is more."""
        return self._ends(self.t).max(axis=0)

    def hessian(self, x: np.ndarray) -> Tridiagonal:
        """A_i, at every x."""
        return Tridiagonal(self.t, np.zeros(self.m), self.c, self.d)

    def largest_hessian(self) -> Tridiagonal:
        """A_i where it is positive semidefinite, else A_i + 2 |lambda_min(A_i)| I."""
        added = 2 * np.maximum(0, -self._ends(self.t).min(axis=0))
        return Tridiagonal(self.t, added, self.c, self.d)


@dataclasses.dataclass(frozen=True)
class Tridiagonal:
    """t_i T + added_i I + shared I; see `mpisim.problems.base.Matrices`."""

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

    def norms(self) -> np.ndarray:
        low, high = extreme_eigenvalues(self.d)
        return np.maximum(low * self.t, high * self.t) + self.added + self.shared

    def without_shared(self) -> Tridiagonal:
        return dataclasses.replace(self, shared=0.0)


def extreme_eigenvalues(d: int) -> tuple[float, float]:
    """The least and the largest of the eigenvalues 4 sin^2(j pi / (2 (d + 1))) of T."""
    angle = pi / (2 * (d + 1))
    return 4 * sin(angle) ** 2, 4 * cos(angle) ** 2


def second_difference(x: np.ndarray) -> np.ndarray:
    """T x along the last axis: 2 x_j - x_{j-1} - x_{j+1}, with zeros beyond the ends."""
    out = 2 * x
    out[..., 1:] -= x[..., :-1]
    out[..., :-1] -= x[..., 1:]
    return out


@njit(cache=True)
def _forms(x):
    """x^T T x / 2, as a sum of squares, and |x|^2 / 2."""
    bend = norm = before = 0.0
    for value in x:
        bend += (value - before) ** 2
        norm += value**2
        before = value
    return (bend + before**2) / 2, norm / 2


@njit(cache=True)
def _write(out, t, b, bent, shifted):
    """out (m, d): t_i bent + shifted - b_i e_1, rounded once to its type."""
    for i in range(out.shape[0]):
        row, factor = out[i], t[i]
        for j in range(row.size):
            row[j] = factor * bent[j] + shifted[j]
        row[0] = factor * bent[0] + shifted[0] - b[i]


@njit(cache=True)
def _write_less(out, t, b, bent, shifted, less):
    """The same minus ``less`` (m, d), of out's type: each rounded for itself, read once."""
    kind = out.dtype.type
    for i in range(out.shape[0]):
        row, own, factor = out[i], less[i], t[i]
        for j in range(row.size):
            row[j] = kind(factor * bent[j] + shifted[j]) - own[j]
        row[0] = kind(factor * bent[0] + shifted[0] - b[i]) - own[0]


@njit(cache=True)
def _coordinate(t, b, c, x, j):
    """The same operations as `second_difference` and `_write`, for coordinate j."""
    bent = 2 * x[j]
    if j > 0:
        bent -= x[j - 1]
    if j < x.size - 1:
        bent -= x[j + 1]
    value = t * bent + c * x[j]
    return value - b if j == 0 else value


@njit(cache=True)
def _write_coordinates(values, t, b, c, x, ptr, indices):
    """Worker i's coordinates indices[ptr[i]:ptr[i+1]], rounded once to the type of ``values``."""
    for i in range(t.size):
        for k in range(ptr[i], ptr[i + 1]):
            values[k] = _coordinate(t[i], b[i], c, x, indices[k])


@njit(cache=True)
def _write_changes(values, t, b, c, x, y, ptr, indices):
    """The same at x minus those at y, each rounded for itself."""
    kind = values.dtype.type
    for i in range(t.size):
        for k in range(ptr[i], ptr[i + 1]):
            j = indices[k]
            at_x = kind(_coordinate(t[i], b[i], c, x, j))
            values[k] = at_x - kind(_coordinate(t[i], b[i], c, y, j))
