"""A quadratic with a million weights and a diagonal Hessian: the plugin of million.toml.

f_i(x) = sum_j a_ij (x_j^2 / 2 - x*_j x_j) + s a_j c_ij z_j x_j with a_ij = a_j (1 + s c_ij), where
c_ij = sqrt(2) cos(2 pi (i / n + phi_j)) has the mean 0 and the mean square 1 over n >= 3 workers.
So f = sum_j a_j (x_j^2 / 2 - x*_j x_j) for every s, the workers' difference. No array has n x d
numbers but the gradients themselves.
"""

from __future__ import annotations

import numpy as np

import mpisim
from mpisim.core.protocols import ClosedForm

GOLDEN = (5**0.5 - 1) / 2  # its multiples, modulo 1, are spread evenly


@mpisim.problem("diagonal")
class Diagonal(mpisim.Problem, rows_of_points=True):
    """See the module. a_j = kappa^-u with u spread evenly over [0, 1]; x* and z are signs.

    dimension : d
    difference : s >= 0; 0 makes all f_i the same
    kappa : max a / min a
    """

    workers: int | None = None
    dimension: int = 1_000_000
    difference: float = 0.05
    kappa: float = 10.0

    def check(self) -> None:
        mpisim.require(self.dimension >= 1, "problem.dimension", self.dimension, "at least 1")
        right = 0 <= self.difference < 2**-0.5
        mpisim.require(right, "problem.difference", self.difference, "a number in [0, 0.707)")
        mpisim.require(self.kappa >= 1, "problem.kappa", self.kappa, "a number >= 1")

    @property
    def seeded(self) -> bool:
        return False

    def load(self, n: int, first: int, count: int, seed: int, dtype: np.dtype) -> None:
        self.n, self.first, self.m, self.d = n, first, count, self.dimension
        self.dtype, self.rows = np.dtype(dtype), np.ones(count, np.int64)
        s = self.difference if n >= 3 else 0.0
        self.identical, self.convex = s == 0, True
        self.identity = f"diagonal, d = {self.d}, s = {s:g}, kappa = {self.kappa:g}"
        j, angle = np.arange(self.d, dtype=float), 2 * np.pi * np.arange(n) / n
        self.a = self.kappa ** -((GOLDEN * j) % 1)
        self.target = np.where(j % 2 == 0, 1.0, -1.0)  # x*
        phi = 2 * np.pi * ((GOLDEN**2 * j + 0.5) % 1)
        self.cosine, self.sine = np.sqrt(2) * s * np.cos(phi), np.sqrt(2) * s * np.sin(phi)
        self.z = np.where(j % 4 < 2, 1.0, -1.0)
        self.every = np.column_stack([np.cos(angle), np.sin(angle)])  # s c_ij = C cosine - S sine
        self.turn = self.every[first : first + count]

    def _rows(self, x: np.ndarray, turn: np.ndarray) -> np.ndarray:
        out, common = np.empty((len(turn), self.d), self.dtype), None
        for i, (c, s) in enumerate(turn.tolist()):
            if x.ndim == 2 or common is None:
                g = self.a * ((x[i] if x.ndim == 2 else x) - self.target)
                h = g + self.a * self.z  # what s c_ij multiplies
                common = g, self.cosine * h, self.sine * h
            g, p, q = common
            out[i] = g + c * p - s * q
        return out

    def gradients(self, x: np.ndarray, *, members: np.ndarray | None = None) -> np.ndarray:
        return self._rows(x, self.turn if members is None else self.turn[members])

    def batch_gradients(
        self, x: np.ndarray, batch: np.ndarray, *, members: np.ndarray | None = None
    ) -> np.ndarray:
        if batch.any():
            raise IndexError("a worker has one sample, number 0")
        return self.gradients(x, members=members)

    def losses(self, x: np.ndarray) -> np.ndarray:
        values = []
        for i, (c, s) in enumerate(self.turn.tolist()):
            if i == 0 or x.ndim == 2:
                y = x[i] if x.ndim == 2 else x
                form = self.a * (y / 2 - self.target) * y
                f, h = form.sum(), form + self.a * self.z * y
                p, q = (self.cosine * h).sum(), (self.sine * h).sum()
            values.append(f + c * p - s * q)
        return np.array(values, float)

    def minimum(self) -> tuple[np.ndarray, float]:
        return self.target.copy(), -float(self.a.sum()) / 2

    @property
    def closed_form(self) -> ClosedForm:
        shares = [1 + c * self.cosine - s * self.sine for c, s in self.every.tolist()]
        s = self.difference if self.n >= 3 else 0.0
        largest, least = float(self.a.max()), float(self.a.min())
        return ClosedForm(
            L_i=np.array([float((self.a * share).max()) for share in shares]),
            L=largest,
            L_plus=largest * (1 + s * s) ** 0.5,
            L_pm=s * largest,
            mu=least,
            mu_i=min(float((self.a * share).min()) for share in shares),
        )
