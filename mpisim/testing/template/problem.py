"""NAME: one line on the problem."""

from __future__ import annotations

import mpisim
import numpy as np


@mpisim.problem("NAME", label="LABEL")
class CLASS(mpisim.Problem):
    """f_i(x) = (1/m) sum_j log(1 + (a_ij . x - b_ij)^2), with generated a_ij and b_ij.

    dimension : d
    samples : m, of each worker
    """

    dimension: int = 10
    samples: int = 20
    workers: int | None = None
    nonnegative = True
    portable = False  # NumPy's log and matrix products have other bits on other processors

    def check(self):
        mpisim.require(self.dimension >= 1, "problem.dimension", self.dimension, "at least 1")
        mpisim.require(self.samples >= 1, "problem.samples", self.samples, "at least 1")

    def load(self, n, first, count, seed, dtype):
        self.n, self.first, self.m, self.d = n, first, count, self.dimension
        self.seed, self.dtype = seed, np.dtype(dtype)
        self.rows = np.full(count, self.samples)  # samples of each worker
        self.identical = n == 1
        self.identity = f"NAME of seed {seed}, {self.samples} x {self.d} a worker"
        # a worker's data depends on its number alone, not on the rank that holds it
        random = [np.random.default_rng([seed, i]) for i in range(first, first + count)]
        drawn = [r.standard_normal((self.samples, self.d + 1)) for r in random]
        data = np.array(drawn).reshape(count, self.samples, self.d + 1)  # count may be 0
        self.a, self.b = data[:, :, :-1], data[:, :, -1]

    def losses(self, x):  # (m,), always float64
        samples = zip(self.a, self.b, strict=True)
        return np.array([np.log1p((a @ x - b) ** 2).mean() for a, b in samples])

    def gradients(self, x):  # (m, d)
        samples = np.tile(np.arange(self.samples), (self.m, 1))
        return self.batch_gradients(x, samples)

    def batch_gradients(self, x, batch):  # batch: (m, b), numbers of samples of each worker
        out = np.empty((self.m, self.d), self.dtype)
        for i, rows in enumerate(batch):
            a, residual = self.a[i, rows], self.a[i, rows] @ x - self.b[i, rows]
            out[i] = (2 * residual / (1 + residual**2)) @ a / len(rows)
        return out
