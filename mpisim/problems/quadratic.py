"""Quadratic tasks whose heterogeneity is set by a noise scale (PermK paper, Algorithm 2).

All A_i = t_i T + c I share the eigenvectors of T = tridiag(-1, 2, -1), so two scalars describe a
worker and every constant has a closed form. No array has n x d entries: f and its gradient cost
O(d), and a single coordinate of a gradient costs O(1).
"""

from __future__ import annotations

import dataclasses
from math import inf, pi, sqrt
from typing import ClassVar, Literal, Self

import numpy as np

from mpisim.core.lazy_rows import LazyRows
from mpisim.core.machine import VECTORS, require_memory
from mpisim.core.numerics.functions import sine
from mpisim.core.numerics.select import FEW
from mpisim.core.protocols import ClosedForm
from mpisim.core.rng import standard_normals
from mpisim.core.schema import require
from mpisim.problems import quadratic_kernels as kernels
from mpisim.problems.base import problem
from mpisim.problems.design import NO_SUCH_ROW
from mpisim.problems.explicit import ExplicitProblem, LazyGradients

SOURCES = {  # of the closed forms
    "L_i": "largest |eigenvalue| of A_i: closed form",
    "L": "closed form, PermK paper, Theorem 3",
    "L_plus": "closed form, PermK paper, Theorem 3",
    "L_pm": "closed form, PermK paper, Theorem 3 and Example 3",
    "mu": "lambda_min(mean A_i): closed form",
}
SCALARS = 4  # float64 numbers that each rank holds for every worker


def extreme_eigenvalues(d: int) -> tuple[float, float]:
    """The least and the largest of the eigenvalues 4 sin^2(j pi / (2 (d + 1))) of T (d, d)."""
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


@problem("quadratic")
class Quadratic(ExplicitProblem, rows_of_points=True):
    """f_i(x) = 1/2 x^T A_i x - b_i^T x, PermK paper, Algorithm 2.

    With nu_i^s = 1 + s xi_i^s, nu_i^b = s xi_i^b and independent standard normal xi (lines 2-6):
    A_i = t_i T + c I with t_i = nu_i^s / 4 and b_i = t_i (nu_i^b - 1) e_1. The constant c makes
    lambda_min((1/n) sum A_i) = lambda (lines 7-11). x^0 = (sqrt(d), 0, ..., 0).

    dimension : d
    noise : s >= 0; 0 makes all f_i the same
    noise_b : s of nu_i^b alone, s unless given. With noise = 0, f_i = phi + b_i^T x (Example 2)
    factors : nu_i^s is multiplied by the first in a first group of neighbouring workers, by the
        second in the next, and so on; groups as even as possible. [1, 3] has A in one half and B
        in the other, as in Appendix M, but there A >= 0, and here a small lambda leaves A an
        eigenvalue below 0
    lambda : > 0; f is strongly convex with mu = lambda, the f_i need not be convex

    The scalars of all n workers are functions of (seed, worker) and drawn on every rank, so f is
    known without an exchange. A worker has one sample. Arithmetic is float64, results have
    ``dtype``.
    """

    workers: int | None = None
    dimension: int = 1000
    noise: float = 0.0
    noise_b: float | None = None
    factors: list[float] | None = None
    lambda_: float = 1e-6

    published: ClassVar[Literal["one", "mean", "sharp"]] = "mean"
    in_ensembles = True

    def check(self) -> None:
        d, s = self.dimension, self.noise
        require(d >= 1, "problem.dimension", d, "at least 1")
        require(0 <= s < inf, "problem.noise", s, "finite and at least 0")
        require(0 <= self._noise_b < inf, "problem.noise_b", self._noise_b, "finite and at least 0")
        given = self.factors
        right = given is None or (given != [] and all(0 < one < inf for one in given))
        require(right, "problem.factors", given, "a list of finite numbers > 0, not empty")
        require(0 < self.lambda_ < inf, "problem.lambda", self.lambda_, "finite and above 0")
        require_memory(VECTORS * d, "problem.dimension", d)
        require_memory(SCALARS * (self.workers or 1), "problem.workers", self.workers)

    def load(self, n: int, first: int, count: int, seed: int, dtype: np.dtype) -> None:
        """See `Problem.load`."""
        groups = len(self._factors)
        allowed = f"a list of at most n = {n} numbers"
        require(groups <= n, "problem.factors", self.factors, allowed)
        self.n, self.first, self.m, self.d = n, first, count, self.dimension
        self.dtype = np.dtype(dtype)
        xi = standard_normals(seed, "quadratic task", n, 2)
        group = -(-(np.arange(n) + 1) * groups // n) - 1  # of each worker
        every_t = np.array(self._factors)[group] * (1 + self.noise * xi[:, 0]) / 4
        every_b = every_t * (self._noise_b * xi[:, 1] - 1)
        self.mean_t, self.mean_b = float(every_t.mean()), float(every_b.mean())
        self.theta = extreme_eigenvalues(self.d)
        self.c = self.lambda_ - min(self.mean_t * theta for theta in self.theta)
        self.every_t, block = every_t, slice(first, first + count)
        self._products: tuple[np.ndarray, tuple[np.ndarray, np.ndarray]] | None = None
        self._innovations: kernels.Innovations | None = None
        self.t, self.b = every_t[block].copy(), every_b[block].copy()
        self.rows = np.ones(count, np.int64)
        alike = len(set(self._factors)) == 1
        self.identical = n == 1 or (alike and self.noise == self._noise_b == 0)
        self.convex = bool(np.min(self._ends(every_t)) >= 0)
        self.attained = "everywhere" if self.convex else "nowhere"
        made_of = f"d = {self.d}, noise = {self.noise:g}, lambda = {self.lambda_:g}"
        made_of += f", noise_b = {self.noise_b:g}" if self.noise_b is not None else ""
        made_of += f", factors = {self.factors}" if self.factors is not None else ""
        self.identity = f"quadratic task, {made_of}, seed = {seed}"

    def repeated(self, copies: int) -> Self:
        made = self.thawed()
        made.copies, made.m = copies, copies * self.m
        made.t, made.b = np.tile(self.t, copies), np.tile(self.b, copies)
        made.rows = np.tile(self.rows, copies)
        made._products = made._innovations = None
        return made

    @property
    def _noise_b(self) -> float:
        return self.noise if self.noise_b is None else self.noise_b

    @property
    def _factors(self) -> list[float]:
        return self.factors or [1.0]

    @property
    def seeded(self) -> bool:
        return self.noise > 0 or self._noise_b > 0

    def initial_point(self) -> np.ndarray:
        """(sqrt(d), 0, ..., 0)."""
        x = np.zeros(self.d, self.dtype)
        x[0] = sqrt(self.d)
        return x

    # one f_i at a time

    def losses(self, x: np.ndarray) -> np.ndarray:
        xs = _wide(x)
        bend, norm = np.array([kernels.forms(x) for x in xs]).reshape(-1, 2).T
        return self.t * bend + self.c * norm - self.b * xs[:, 0]

    def lazy_gradients(
        self, x: np.ndarray, *, members: np.ndarray | None = None
    ) -> QuadraticGradients:
        return QuadraticGradients(self, x, members)

    def gradients(self, x: np.ndarray, *, members: np.ndarray | None = None) -> np.ndarray:
        return self.lazy_gradients(x, members=members).dense()

    def products_at(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """T x and c x, float64, shape (1, d), or a row for each of the points x.

        Those of one point, or of one for each run of an ensemble, (runs, d), are computed once for
        all blocks of workers.
        """
        if x.ndim == 2 and len(x) != self.copies:
            wide = x.astype(np.float64)
            return second_difference(wide), self.c * wide
        if self._products is None or not np.array_equal(self._products[0], x):
            wide = _wide(x)
            self._products = x.copy(), (second_difference(wide), self.c * wide)
        return self._products[1]

    def innovations(self, state: np.ndarray | None) -> kernels.Innovations | None:
        """The bounds kept while ``state`` changes by what is sent alone; None forgets them."""
        if state is None:
            self._innovations = None
        elif self._innovations is None or self._innovations.state() is not state:
            self._innovations = kernels.Innovations(self.t, self.b, state)
        return self._innovations

    def batch_gradients(
        self, x: np.ndarray, batch: np.ndarray, *, members: np.ndarray | None = None
    ) -> np.ndarray:
        """The gradients themselves; the one sample of each worker has the number 0."""
        if batch.any():
            raise IndexError(NO_SUCH_ROW)
        return self.gradients(x, members=members)

    # f itself, and what is known of it

    def loss_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        xs, gradient = _wide(x), np.empty((1, self.d))
        t, b = np.array([self.mean_t]), np.array([self.mean_b])
        kernels.write_gradients(gradient, t, b, second_difference(xs), self.c * xs, None)
        bend, norm = kernels.forms(xs[0])
        return self.mean_t * bend + self.c * norm - self.mean_b * float(x[0]), gradient[0]

    def minimum(self) -> tuple[np.ndarray, float]:
        x = kernels.solve(self.mean_t, self.c, self.mean_b, self.d)
        return x, self.loss_and_gradient(x)[0]

    def _ends(self, t: np.ndarray) -> np.ndarray:
        """t_i theta + c for the extreme eigenvalues theta of T, shape (2, workers)."""
        return np.array(self.theta)[:, None] * t + self.c

    @property
    def closed_form(self) -> ClosedForm:
        """See `closed_form_of`; mu is lambda, exactly."""
        return dataclasses.replace(self.closed_form_of(np.ones(self.n, bool)), mu=self.lambda_)

    def closed_form_of(self, members: np.ndarray) -> ClosedForm:
        """Theorem 3: every A_i is t_i theta_j + c in one basis, so all are maxima over j.

        They are convex functions of theta, so the maximum is at one end.
        """
        t = self.every_t[members]
        ends, mean = self._ends(t), self._ends(t.mean(keepdims=True))
        return ClosedForm(
            L_i=np.abs(ends).max(axis=0),
            L=float(np.abs(mean).max()),
            L_plus=sqrt((ends**2).mean(axis=1).max()),
            L_pm=float(t.std()) * max(self.theta),
            mu=float(mean.min()),
            mu_i=float(ends.min()),
            source=SOURCES,
        )

    def sample_norms(self) -> np.ndarray:
        return self.closed_form.L_i[self.first : self.first + self.m]

    def published_norms(self) -> np.ndarray:
        """2 t_i + c + 2 |t_i| cos(pi / (d+1)) = lambda_max(A_i), even if -lambda_min is larger."""
        return self._ends(self.t).max(axis=0)

    def hessian(self, x: np.ndarray) -> Tridiagonal:
        """A_i, at every x."""
        return Tridiagonal(self.t, np.zeros(self.m), self.c, self.d)

    def largest_hessian(self) -> Tridiagonal:
        """A_i where it is positive semidefinite, else A_i + 2 |lambda_min(A_i)| I."""
        added = 2 * np.maximum(0, -self._ends(self.t).min(axis=0))
        return Tridiagonal(self.t, added, self.c, self.d)


class QuadraticGradients(LazyGradients):
    """The gradients of a `Quadratic`, which `quadratic_kernels` writes."""

    def fill(self, first: int, out: np.ndarray) -> None:
        self._write(slice(first, first + len(out)), out, None)

    def fill_less(self, first: int, less: np.ndarray, out: np.ndarray) -> None:
        self._write(slice(first, first + len(out)), out, less)

    def _write(self, some: slice, out: np.ndarray, less: np.ndarray | None) -> None:
        p, x = self.problem, self.x[some] if self.point_each else self.x
        (txs, cxs), t, b = p.products_at(x), p.t[self.workers], p.b[self.workers]
        if self.one_point or self.point_each:
            kernels.write_gradients(out, t[some], b[some], txs, cxs, less)
            return
        n = len(t) // len(x)
        for run in range(some.start // n, -(-some.stop // n)):
            part = slice(max(run * n - some.start, 0), min((run + 1) * n, some.stop) - some.start)
            rows = slice(part.start + some.start, part.stop + some.start)
            tx, cx = txs[run : run + 1], cxs[run : run + 1]
            state = None if less is None else less[part]
            kernels.write_gradients(out[part], t[rows], b[rows], tx, cx, state)

    def coordinates(
        self, ptr: np.ndarray, indices: np.ndarray, before: np.ndarray | None
    ) -> np.ndarray:
        p, values, xs = self.problem, np.empty(indices.size, self.dtype), np.atleast_2d(self.x)
        ys = None if before is None else np.atleast_2d(before)
        t, b = p.t[self.workers], p.b[self.workers]
        kernels.write_coordinates(values, t, b, p.c, xs, ys, ptr, indices)
        return values

    def largest_less(self, other: LazyRows | np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        if k > FEW or not self.one_point or not isinstance(other, np.ndarray):
            return super().largest_less(other, k)
        p, (m, _) = self.problem, self.shape
        indices, values = np.empty((m, k), np.int64), np.empty((m, k), self.dtype)
        [tx], [cx] = p.products_at(self.x)
        t, b = p.t[self.workers], p.b[self.workers]
        kernels.largest_differences(t, b, tx, cx, other, indices, values)
        return indices, values

    def largest_innovations(self, state: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        bounded = self.one_point and self.members is None
        if not bounded:  # ``state`` changes by more than the bounds have grown
            self.problem.innovations(None)
        if k > 1 or not bounded:
            return self.largest_less(state, k)
        [tx], [cx] = self.problem.products_at(self.x)
        return self.problem.innovations(state).largest(tx, cx, state)


def _wide(x: np.ndarray) -> np.ndarray:
    """Points (d,) or (m, d) in float64, shape (1, d) or (m, d)."""
    return np.atleast_2d(x).astype(np.float64, copy=False)
