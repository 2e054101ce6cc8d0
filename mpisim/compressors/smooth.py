"""The wrapper that turns DCGD and DIANA into DCGD+ and DIANA+: each worker has its own metric."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numba import njit

from mpisim.compressors.base import Compressor, WorkerRows, compressor
from mpisim.compressors.matrix_roots import Diagonal, LowRank, MatrixRoot
from mpisim.core.errors import InputError
from mpisim.core.protocols import Objective, Uplink
from mpisim.core.rng import Draw
from mpisim.core.schema import require
from mpisim.theory.smoothness import closed_form, matrices
from mpisim.wire.base import Carried, CarriedForm, Form, Message


@compressor("smooth", "smooth", {})
class Smooth(Compressor):
    """S_i(v) = L_i^{1/2} C(L_i^{†1/2} v), C = ``inner``: SAQ, Algorithms 1 and 2 (DCGD+, DIANA+).

    inner : any compressor whose workers draw independently
    rank : r, 1 <= r < d: L_i is replaced by the over-approximation of SAQ, A.3, with the top r
        eigenpairs, sum_{k <= r} (lambda_k - l) u_k u_k^T + l I, l = lambda_{r+1}
    approximation : "diagonal": L_i is replaced by Diag(sum_k |L_i;jk|), which is above it. (A.3 has
        the idea of a diagonal matrix, and does not say which.)

    L_i are the smoothness matrices of the problem (`mpisim.theory.smoothness.matrices`). Before
    round 0 each worker sends L_i^{1/2} as d^2 values; with ``rank``, as the r d + 1 values of
    L_i^{1/2} = V V^T + c I; if diagonal, as d values. Then C sends what it fits to Diag(L_i).
    Workers and server use the square of the decoded root as L_i, which is the problem's, or what
    replaces it, to within wire precision. The message of a round and its paper bits are C's.

    With |v|^2 in the metric of L_i^†, S_i is unbiased with C's omega on the range of L_i, where
    gradients and their differences lie; that omega is ``shift_omega``, for DIANA+'s alpha.
    ``omega``, of the Euclidean norm, is max_i cal-L_i / (the least non-zero eigenvalue of L_i).
    ``density`` is C's.

    L_i may be singular. Eigenvalues of L_i below max(d eps_64, (d eps)^2) lambda_max, eps that of
    the wire, count as 0: there L_i^{†1/2} is 0, and C compresses 0.
    """

    inner: Compressor
    rank: int | None = None
    approximation: Literal["diagonal"] | None = None

    def check(self) -> None:
        self._root = self._matrix_root()
        self.inner = self.bind_inner("inner")
        if self.inner.correlated:
            raise InputError(
                f"compressor.inner.name: {self.inner.name!r} is not allowed inside 'smooth': its"
                " workers do not draw independently"
            )
        self._roots: WorkerRows | None = None
        self._cal_L_i = np.zeros(0)
        self._cal_L: float | None = None
        self._omega: float | None = None

    def _matrix_root(self) -> MatrixRoot:
        types = self.d, self.precision.wire, self.precision.arithmetic
        if self.rank is None:
            return MatrixRoot(*types) if self.approximation is None else Diagonal(*types)
        allowed = f"an integer from 1 to d - 1 = {self.d - 1}"
        require(1 <= self.rank < self.d, "compressor.rank", self.rank, allowed)
        if self.approximation is not None:
            raise InputError(
                f"compressor.approximation: {self.approximation!r} is not allowed with"
                " compressor.rank; one of the two replaces L_i"
            )
        return LowRank(*types, self.rank)

    def prepare(self, star: Uplink, problem: Objective) -> None:
        """Exchange L_i^{1/2}, and what ``inner`` fits to L_i. Collective."""
        try:
            L_i = matrices(problem)
        except InputError:
            raise InputError(
                f"compressor.name: 'smooth' needs smoothness matrices L_i, and problem"
                f" {problem.name!r} has none known"
            ) from None
        workers = range(star.first, star.first + star.m)
        numbers = [self._root.numbers(matrix) for matrix in L_i]
        sent = WorkerRows(*star.send_once(np.array(numbers).reshape(star.m, self._root.count)))
        self._roots = WorkerRows(sent.first, self._root.roots(sent.rows))
        pairs = [self._root.inverse(self._roots.one(i)) for i in workers]
        inverses = np.array([inverse for inverse, _ in pairs], self.precision.arithmetic)
        self._inverses = inverses.reshape(star.m, *self._roots.rows.shape[1:])
        self._first = star.first
        closed = closed_form(problem)  # there ``shared`` may be negative
        mu = closed.mu if closed else problem.double().largest_hessian().shared
        mu = mu if problem.convex else 0.0
        diagonals = WorkerRows(self._roots.first, self._root.diagonals(self._roots.rows))
        self.inner.fit(star, diagonals, star.n * mu)
        self._bounds(star, [least for _, least in pairs])

    def _bounds(self, star: Uplink, least: list[float]) -> None:
        """cal-L_max, and omega in the Euclidean norm, over all workers."""
        if self.inner.omega is None:
            return
        bounds = np.zeros((star.m, 2))  # of each worker of this rank
        for t in range(star.m):
            matrix = self._root.matrix(self._prepared().one(star.first + t))
            bounds[t, 0] = self.inner.cal_L(matrix, star.first + t)
            bounds[t, 1] = bounds[t, 0] / least[t] if least[t] > 0 else 0.0
        self._cal_L_i = bounds[:, 0]
        worst = star.all_workers(bounds).max(axis=0)
        self._cal_L, self._omega = float(worst[0]), float(worst[1])

    def form(self, draw: Draw) -> MappedForm:
        roots = self._prepared()
        return MappedForm(self.inner.form(draw), roots.rows, roots.which(draw))

    def _prepared(self) -> WorkerRows:
        if self._roots is None:
            raise InputError("compressor.name: 'smooth' must be prepared with a problem before use")
        return self._roots

    def compress(self, v: np.ndarray, draw: Draw) -> Mapped:
        roots = self._prepared()
        which = roots.which(draw)
        on_rank = which - (self._first - roots.first)  # among this rank's workers
        inner = self.inner.compress(products(self._inverses, on_rank, v), draw)
        return Mapped(MappedForm(inner.form, roots.rows, which), inner)

    @property
    def omega(self) -> float | None:
        return self._omega

    @property
    def shift_omega(self) -> float | None:
        return self.inner.omega

    @property
    def cal_L_max(self) -> float | None:
        return self._cal_L

    def cal_L_i(self, L_i: np.ndarray) -> np.ndarray:
        return self._cal_L_i

    def dual_squares(self, v: np.ndarray, L_i: np.ndarray) -> np.ndarray:
        u = products(self._inverses, np.arange(len(v)), v.astype(self._inverses.dtype))
        return (u.astype(np.float64) ** 2).sum(axis=1)

    @property
    def density(self) -> float:
        return self.inner.density

    def paper_bits(self, message: Message) -> np.ndarray:
        assert isinstance(message, Mapped)
        return self.inner.paper_bits(message.inner)


class Mapped(Carried):
    """``inner`` is what travels; `decoded` applies the matrices."""

    def decoded(self) -> np.ndarray:
        return products(self.form.matrices, self.form.which, self.inner.decoded())


class MappedForm(CarriedForm):
    """Messages of the form ``inner``, decoded and multiplied by matrices[which[t]] for worker t.

    matrices : array, shape (workers known, d, d), symmetric, or their diagonals (workers known, d);
        arithmetic precision
    which : array, shape (workers,), int64
    """

    message = Mapped

    def __init__(self, inner: Form, matrices: np.ndarray, which: np.ndarray):
        super().__init__(inner.d, inner.workers, inner.precision, inner)
        self.matrices, self.which = matrices, which


def products(matrices: np.ndarray, which: np.ndarray, v: np.ndarray) -> np.ndarray:
    """matrices[which[t]] v_t for ``v`` (m, d), shape (m, d); matrices as in `MappedForm`."""
    return matrices[which] * v if matrices.ndim == 2 else _products(matrices, which, v)


@njit(cache=True)
def _products(matrices, which, v):
    """The products with (d, d) matrices.

    Adds the rows of the symmetric matrix times their coordinates, in ascending order: the same bits
    for any block, and coordinates that are 0 cost nothing.
    """
    out = np.zeros(v.shape, v.dtype)
    for t in range(v.shape[0]):
        matrix, row = matrices[which[t]], out[t]
        for j in range(v.shape[1]):
            x = v[t, j]
            if x != 0:
                line = matrix[j]
                for k in range(row.size):
                    row[k] += x * line[k]
    return out
