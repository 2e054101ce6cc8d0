"""What `smooth` sends of a worker's smoothness matrix L_i, and L_i^{1/2} made from it."""

from __future__ import annotations

import dataclasses

import numpy as np
from numba import njit

from mpisim.core.numerics.eigen import eigh
from mpisim.core.numerics.sums import product


@dataclasses.dataclass(frozen=True)
class MatrixRoot:
    """L^{1/2} itself, symmetric to the bit, as d^2 numbers.

    Or the root of a larger matrix, which serves as L_i just as well: `LowRank`, `Diagonal`.

    d : dimension; wire, arithmetic : types of what is sent and of what is computed with it.
    """

    d: int
    wire: np.dtype
    arithmetic: np.dtype

    @property
    def count(self) -> int:
        """Numbers sent."""
        return self.d * self.d

    def numbers(self, matrix: np.ndarray) -> np.ndarray:
        """What is sent of L, shape (count,), for L symmetric positive semidefinite, (d, d)."""
        values, vectors = eigh(matrix)
        values = np.where(values > cut_off(self.d, self.wire) * values[-1], values, 0.0)
        return _symmetric(_composed(vectors, np.sqrt(values)), matrix).ravel()

    def roots(self, sent: np.ndarray) -> np.ndarray:
        """L_i^{1/2} from decoded ``sent`` (k, count): (k, d, d), or its diagonal (k, d)."""
        return sent.reshape(-1, self.d, self.d)

    def inverse(self, root: np.ndarray) -> tuple[np.ndarray, float]:
        """L^{†1/2} in the shape of ``root``, and L's least non-zero eigenvalue (0 for L = 0)."""
        values, vectors = eigh(root.astype(np.float64))
        kept = values > np.sqrt(cut_off(self.d, self.wire)) * values[-1]
        values, vectors = values[kept], vectors[:, kept]
        if not values.size:
            return np.zeros(root.shape), 0.0
        return _symmetric(_composed(vectors, 1 / values), root), float(values[0] * values[0])

    def matrix(self, root: np.ndarray) -> np.ndarray:
        """L, shape (d, d), float64."""
        root = root.astype(np.float64)
        return product(root, root)

    def diagonals(self, roots: np.ndarray) -> np.ndarray:
        """Diag(L_i), shape (k, d), float64."""
        return _diagonals(roots)


@dataclasses.dataclass(frozen=True)
class LowRank(MatrixRoot):
    """c = sqrt(l) and V, r d + 1 numbers: V V^T + c I is the root of the over-approximation

    sum_{k <= r} (lambda_k - l) u_k u_k^T + l I, l = lambda_{r+1}: SAQ, A.3.
    """

    rank: int

    @property
    def count(self) -> int:
        return self.rank * self.d + 1

    def numbers(self, matrix: np.ndarray) -> np.ndarray:
        """c and the columns (sqrt(lambda_k) - c)^{1/2} u_k of V."""
        values, vectors = eigh(matrix)
        values = np.where(values > cut_off(self.d, self.wire) * values[-1], values, 0.0)
        roots = np.sqrt(values[::-1][: self.rank + 1])
        top = vectors[:, ::-1][:, : self.rank] * np.sqrt(roots[: self.rank] - roots[self.rank])
        return np.concatenate([roots[self.rank :], top.T.ravel()])

    def roots(self, sent: np.ndarray) -> np.ndarray:
        out = np.zeros((len(sent), self.d, self.d), self.arithmetic)
        _assemble(sent[:, 0].copy(), sent[:, 1:].reshape(-1, self.rank, self.d), out)
        return out


class Diagonal(MatrixRoot):
    """The root of D = Diag(sum_k |L_jk|), d numbers: SAQ, A.3, names a diagonal matrix.

    D - L is diagonally dominant, so L <= D. Of the diagonal matrices
    sum_k |L_jk| s_k / s_j, s > 0, which all are above L, D has the least trace.
    """

    @property
    def count(self) -> int:
        return self.d

    def numbers(self, matrix: np.ndarray) -> np.ndarray:
        return np.sqrt(np.abs(matrix).sum(axis=0))  # row after row: the same bits anywhere

    def roots(self, sent: np.ndarray) -> np.ndarray:
        return sent

    def inverse(self, root: np.ndarray) -> tuple[np.ndarray, float]:
        root = root.astype(np.float64)
        kept = root[root > 0]
        out = np.divide(1.0, root, out=np.zeros(self.d), where=root > 0)
        return out, float(kept.min()) ** 2 if kept.size else 0.0

    def matrix(self, root: np.ndarray) -> np.ndarray:
        return np.diag(root.astype(np.float64) ** 2)

    def diagonals(self, roots: np.ndarray) -> np.ndarray:
        return roots.astype(np.float64) ** 2


def cut_off(d: int, wire: np.dtype) -> float:
    """Eigenvalues of L_i below this multiple of the largest count as 0.

    Rounding leaves d eps of a zero in float64. In L_i^{1/2} the wire leaves d eps of its own, and
    L_i has the square.
    """
    return float(max(d * np.finfo(np.float64).eps, (d * np.finfo(wire).eps) ** 2))


def _composed(vectors: np.ndarray, values: np.ndarray) -> np.ndarray:
    """V diag(values) V^T, (d, d), from vectors V (d, k)."""
    return product(np.ascontiguousarray(vectors * values), np.ascontiguousarray(vectors.T))


def _symmetric(matrix: np.ndarray, source: np.ndarray) -> np.ndarray:
    """``matrix``, a function of ``source``: exactly symmetric, 0 in the zero rows of ``source``.

    So features that no sample of a worker has cost no bits.
    """
    out = (matrix + matrix.T) / 2
    unused = ~source.any(axis=1)
    out[unused], out[:, unused] = 0.0, 0.0
    return out


@njit(cache=True)
def _diagonals(roots):
    """Diag(L_i) from L_i^{1/2}, shape (m, d), float64."""
    m, d, _ = roots.shape
    out = np.zeros((m, d))
    for i in range(m):
        for j in range(d):
            for k in range(d):
                out[i, j] += np.float64(roots[i, j, k]) ** 2
    return out


@njit(cache=True)
def _assemble(c, factors, out):
    """out_i = V_i V_i^T + c_i I, in an order that no block changes; factors: V^T, (m, r, d)."""
    for i in range(out.shape[0]):
        for row in factors[i]:
            for j in range(row.size):
                for k in range(row.size):
                    out[i, j, k] += row[j] * row[k]
        for j in range(out.shape[1]):
            out[i, j, j] += c[i]
