"""PowerSGD: gradients as matrices of low rank, by a power iteration that goes on from the last."""

from __future__ import annotations

import dataclasses
from math import prod
from typing import Any

import numpy as np
from numba import njit

from mpisim.compressors.base import Identity
from mpisim.compressors.rank import nearly_square
from mpisim.core.arrays import to_host
from mpisim.core.numerics.functions import normal_quantiles
from mpisim.core.numerics.sums import product
from mpisim.core.schema import require
from mpisim.core.state import PerWorker, Shared
from mpisim.methods.estimators.base import estimator
from mpisim.methods.estimators.batches import Stochastic
from mpisim.wire.factors import is_sent_itself


@estimator("powersgd")
class PowerSGD(Stochastic):
    """PowerSGD with error feedback and warm start (Vogels, Karimireddy, Jaggi, 2019).

    For each matrix of x, M_i being worker i's gradient plus e_i^k,

    P         = (1/n) sum_i M_i Q^{k-1}, and then its columns made orthonormal by Gram-Schmidt
    Q^k       = (1/n) sum_i Q_i,  Q_i = M_i^T P
    g^k       = P (Q^k)^T
    e_i^{k+1} = M_i - P Q_i^T

    rank : r, the columns of P and Q

    So g^k is the projection of M, the mean of the M_i, onto the columns of P. Q^{-1} has normal
    entries, from the seed. There is no theorem with constants: give a number for the step. Of the
    first round E|g^0 - M|^2 <= (1 - r / min(a, b)) |M|^2 is derived here: the shares of singular
    directions in P add up to r, and larger singular values have larger shares on average.

    The paper sums P and Q by all-reduce. Here workers send theirs to the server, which sends the
    means to all: the same numbers, r (a + b) values each way for a matrix a x b. A matrix with
    fewer values than its factors, a bias say, is sent itself, and so exactly. The matrices are
    those that ``rank-k`` has.

    This differs from the published code. There e_i^{k+1} = M_i - g^k, which has the same mean and
    so gives the same g^k, but grows with k where workers differ. Here a column of P that is 0
    leaves its column of Q as it was; there the divisor has a small number more. Momentum is the
    optimizer's.
    """

    rank: int = dataclasses.field(kw_only=True)

    e_i = PerWorker("what was not sent")
    Q = Shared("the right factors, a list")

    def check(self) -> None:
        super().check()
        name, d = self.compressor.name, self.compressor.d
        uncompressed = isinstance(self.compressor, Identity)
        require(uncompressed, "compressor.name", name, "'identity': 'powersgd' sends factors")
        self.shapes = tuple(self.oracle.problem.shapes or (nearly_square(d),))
        most = max(map(min, self.shapes))
        require(1 <= self.rank <= most, "method.rank", self.rank, f"an integer from 1 to {most}")
        shapes = enumerate(self.shapes)
        self.factored = tuple(j for j, shape in shapes if not is_sent_itself(self.rank, shape))

    def start(self, x: np.ndarray) -> np.ndarray:
        self.e_i, self.Q = self.star.zeros(self.star.m, len(x)), []
        for a, b in (self.shapes[j] for j in self.factored):
            r = min(self.rank, a, b)
            normals = normal_quantiles(self.star.uniforms(b * r) + 2.0**-54)
            self.Q = [*self.Q, normals.reshape(b, r)]
        return self.estimate(x)

    def estimate(self, x: np.ndarray) -> np.ndarray:
        M_i = self.e_i + self.gradients(x)
        M, Q = self.matrices(M_i), dict(zip(self.factored, self.Q, strict=True))
        X, X_i = self.exchange([products(M[j], Q[j]) if j in Q else M[j] for j in range(len(M))])
        P = {j: orthonormal(X[j]) for j in Q}
        sides = [products(M[j].transpose(0, 2, 1), P[j]) for j in Q]
        right, Q_i = self.exchange(sides) if Q else ([], [])
        self.Q = [np.where(P[j].any(axis=0), q, Q[j]) for j, q in zip(Q, right, strict=True)]
        for j, q, q_i in zip(Q, self.Q, Q_i, strict=True):
            X[j], X_i[j] = product(P[j], q.T), products(q_i, P[j].T).transpose(0, 2, 1)
        g = self.placed(X)[0]
        self.e_i = M_i - self.placed(X_i)
        self.star.estimated(g, g)
        return g

    def matrices(self, rows: Any) -> list[np.ndarray]:
        """Each matrix of ``rows`` (m, d), shape (m, a, b), float64."""
        rows, ends = to_host(rows), np.cumsum([a * b for a, b in self.shapes])
        parts = zip(np.split(rows, ends[:-1], axis=1), self.shapes, strict=True)
        return [part.astype(np.float64).reshape(len(rows), *shape) for part, shape in parts]

    def exchange(self, parts: list[np.ndarray]) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Arrays (m, ...) travel together: their means over all workers, and each as sent."""
        flat = [part.reshape(len(part), prod(part.shape[1:])) for part in parts]
        ends = np.cumsum([part.shape[1] for part in flat])

        def split(array: Any) -> list[np.ndarray]:
            array = to_host(array).astype(np.float64)
            pieces = zip(np.split(array, ends[:-1], axis=-1), parts, strict=True)
            return [piece.reshape(*array.shape[:-1], *part.shape[1:]) for piece, part in pieces]

        rows = np.concatenate(flat, axis=1).astype(self.star.precision.arithmetic)
        upload = self.star.dense(rows)
        return split(self.star.average(upload)), split(upload.decoded())

    def placed(self, parts: list[np.ndarray]) -> Any:
        """Matrices (..., a, b) as rows (k, d) in the run's arithmetic, where its vectors live."""
        rows = [part.reshape(-1, part.shape[-2] * part.shape[-1]) for part in parts]
        array = np.concatenate(rows, axis=1).astype(self.star.precision.arithmetic)
        return self.star.arrays.placed(array)


@njit(cache=True)
def products(matrices, q):
    """M_i q for matrices (m, a, b) and q (b, r), shape (m, a, r)."""
    out = np.empty((matrices.shape[0], matrices.shape[1], q.shape[1]))
    for i in range(len(matrices)):
        out[i] = product(matrices[i], q)
    return out


@njit(cache=True)
def orthonormal(p):
    """Gram-Schmidt for the columns of p (a, r), each taken off twice.

    A column that depends on those before leaves rounding errors, which may be along them: it is 0.
    """
    a, r = p.shape
    for t in range(r):
        before = (p[:, t] ** 2).sum()
        for s in 2 * list(range(t)):
            along = 0.0
            for j in range(a):
                along += p[j, s] * p[j, t]
            for j in range(a):
                p[j, t] -= along * p[j, s]
        square = 0.0
        for j in range(a):
            square += p[j, t] * p[j, t]
        if square <= 1e-24 * before:
            p[:, t] = 0
        else:
            p[:, t] /= np.sqrt(square)
    return p
