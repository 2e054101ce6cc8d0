"""The wrapper that turns DCGD and DIANA into DCGD+ and DIANA+: each worker has its own metric."""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.compressors.base import Compressor, compressor
from mpisim.compressors.mapped import Mapped, MappedForm, products
from mpisim.compressors.worker_rows import WorkerRows, send_once
from mpisim.core.errors import InputError
from mpisim.core.products import product
from mpisim.core.protocols import Objective, Uplink
from mpisim.core.rng import Draw
from mpisim.core.schema import require
from mpisim.core.symmetric import eigh
from mpisim.theory.smoothness import matrices
from mpisim.wire.base import Message


@compressor("smooth")
class Smooth(Compressor):
    """S_i(v) = L_i^{1/2} C(L_i^{†1/2} v), C = ``inner``: SAQ, Algorithms 1 and 2 (DCGD+, DIANA+).

    inner : any compressor whose workers draw independently
    rank : r, 1 <= r < d: L_i is replaced by the over-approximation of SAQ, A.3, with the top r
        eigenpairs, sum_{k <= r} (lambda_k - l) u_k u_k^T + l I, l = lambda_{r+1}

    L_i are the smoothness matrices of the problem (`mpisim.theory.smoothness.matrices`). Before
    round 0 each worker sends L_i^{1/2} as d^2 values or, with ``rank``, as the r d + 1 values of
    L_i^{1/2} = V V^T + c I. Then C sends what it fits to Diag(L_i). Workers and server use the
    square of the decoded root as L_i, which is the problem's to within wire precision. The message
    of a round and its paper bits are C's.

    With |v|^2 in the metric of L_i^†, S_i is unbiased with C's omega on the range of L_i, where
    gradients and their differences lie; that omega is ``shift_omega``, for DIANA+'s alpha.
    ``omega``, of the Euclidean norm, is max_i cal-L_i / (the least non-zero eigenvalue of L_i).
    ``density`` is C's.

    L_i may be singular. Eigenvalues of L_i below max(d eps_64, (d eps)^2) lambda_max, eps that of
    the wire, count as 0: there L_i^{†1/2} is 0, and C compresses 0.
    """

    inner: Compressor
    rank: int | None = None

    def check(self) -> None:
        if self.rank is not None:
            allowed = f"an integer from 1 to d - 1 = {self.d - 1}"
            require(1 <= self.rank < self.d, "compressor.rank", self.rank, allowed)
        self.inner = self.bind_inner("inner")
        if self.inner.correlated:
            raise InputError(
                f"compressor.inner.name: {self.inner.name!r} is not allowed inside 'smooth': its"
                " workers do not draw independently"
            )
        self._roots: WorkerRows | None = None
        self._blocks: dict[tuple[int, int], np.ndarray] = {}
        self._cal_L_i = np.zeros(0)
        self._cal_L: float | None = None
        self._omega: float | None = None

    def prepare(self, star: Uplink, problem: Objective) -> None:
        """Exchange L_i^{1/2}, and what ``inner`` fits to L_i. Collective."""
        try:
            own_matrices = matrices(problem)
        except InputError:
            raise InputError(
                f"compressor.name: 'smooth' needs smoothness matrices L_i, and problem"
                f" {problem.name!r} has none known"
            ) from None
        self._roots = self._send(star, own_matrices)
        self._blocks.clear()
        own = range(star.first, star.first + star.m)
        pairs = [pseudo_inverse(self._roots.one(i), self.precision.wire) for i in own]
        shape, arithmetic = (star.m, self.d, self.d), self.precision.arithmetic
        self._inverses = np.array([inverse for inverse, _ in pairs], arithmetic).reshape(shape)
        self._first = star.first
        shared = problem.double().largest_hessian().shared
        mu = shared if problem.convex else 0.0
        diagonals = WorkerRows(self._roots.first, _diagonals(self._roots.rows))
        self.inner.fit(star, diagonals, star.n * mu)
        self._bounds(star, [least for _, least in pairs])

    def _send(self, star: Uplink, own: np.ndarray) -> WorkerRows:
        """Send L_i^{1/2}; returns the decoded ones that this rank knows, shape (known, d, d)."""
        d, wire = self.d, self.precision.wire
        if self.rank is None:
            roots = [square_root(matrix, wire) for matrix in own]
            sent = send_once(star, np.array(roots).reshape(star.m, d * d))
            return WorkerRows(sent.first, sent.rows.reshape(-1, d, d))
        factors = [low_rank_root(matrix, self.rank, wire) for matrix in own]
        width = self.rank * d + 1
        sent = send_once(star, np.array(factors).reshape(star.m, width))
        out = np.zeros((len(sent.rows), d, d), self.precision.arithmetic)
        _assemble(sent.rows[:, 0].copy(), sent.rows[:, 1:].reshape(-1, self.rank, d), out)
        return WorkerRows(sent.first, out)

    def _bounds(self, star: Uplink, least: list[float]) -> None:
        """cal-L_max, and omega in the Euclidean norm, over all workers."""
        if self.inner.omega is None:
            return
        found = []
        for t in range(star.m):
            root = self._roots.one(star.first + t).astype(np.float64)  # type: ignore[union-attr]
            cal_L = self.inner.cal_L(product(root, root), star.first + t)
            assert cal_L is not None
            found.append([cal_L, cal_L / least[t] if least[t] > 0 else 0.0])
        own = np.array(found, np.float64).reshape(star.m, 2)
        self._cal_L_i = own[:, 0]
        worst = star.all_workers(own).max(axis=0)
        self._cal_L, self._omega = float(worst[0]), float(worst[1])

    def form(self, draw: Draw) -> MappedForm:
        return MappedForm(self.inner.form(draw), self._known().rows, self._which(draw))

    def _which(self, draw: Draw) -> np.ndarray:
        """The rows of the workers that draw, kept if all do: the same in every round."""
        if draw.clients is not None or draw.purpose == "down":
            return self._known().which(draw)
        block = draw.first, draw.count
        if block not in self._blocks:
            self._blocks[block] = self._known().which(draw)
        return self._blocks[block]

    def _known(self) -> WorkerRows:
        if self._roots is None:
            raise InputError("compressor.name: 'smooth' must be prepared with a problem before use")
        return self._roots

    def compress(self, v: np.ndarray, draw: Draw) -> Mapped:
        roots, which = self._known(), self._which(draw)
        own = which - (self._first - roots.first)  # among this rank's workers
        inner = self.inner.compress(products(self._inverses, own, v), draw)
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
        own = products(self._inverses, np.arange(len(v)), v.astype(self._inverses.dtype))
        return (own.astype(np.float64) ** 2).sum(axis=1)

    @property
    def density(self) -> float:
        return self.inner.density

    def paper_bits(self, message: Message) -> np.ndarray:
        assert isinstance(message, Mapped)
        return self.inner.paper_bits(message.message)


def cut_off(d: int, wire: np.dtype) -> float:
    """Eigenvalues of L_i below this multiple of the largest count as 0.

    Rounding leaves d eps of a zero in float64. In L_i^{1/2} the wire leaves d eps of its own, and
    L_i has the square.
    """
    return float(max(d * np.finfo(np.float64).eps, (d * np.finfo(wire).eps) ** 2))


def square_root(matrix: np.ndarray, wire: np.dtype) -> np.ndarray:
    """L^{1/2} of a symmetric positive semidefinite (d, d) matrix, symmetric to the bit."""
    values, vectors = eigh(matrix)
    values = np.where(values > cut_off(len(matrix), wire) * values[-1], values, 0.0)
    return _symmetric(_composed(vectors, np.sqrt(values)), matrix)


def low_rank_root(matrix: np.ndarray, rank: int, wire: np.dtype) -> np.ndarray:
    """c and V, shape (1 + r d,), with V V^T + c I the root of L's over-approximation: SAQ, A.3.

    c = sqrt(l), l = lambda_{r+1}, and column k of V is (sqrt(lambda_k) - c)^{1/2} u_k.
    """
    values, vectors = eigh(matrix)
    values = np.where(values > cut_off(len(matrix), wire) * values[-1], values, 0.0)
    roots = np.sqrt(values[::-1][: rank + 1])
    top = vectors[:, ::-1][:, :rank] * np.sqrt(roots[:rank] - roots[rank])
    return np.concatenate([roots[rank:], top.T.ravel()])


def pseudo_inverse(root: np.ndarray, wire: np.dtype) -> tuple[np.ndarray, float]:
    """L^{†1/2} from the decoded L^{1/2}, and L's least non-zero eigenvalue (0 for L = 0)."""
    values, vectors = eigh(root.astype(np.float64))
    kept = values > np.sqrt(cut_off(len(root), wire)) * values[-1]
    values, vectors = values[kept], vectors[:, kept]
    if not values.size:
        return np.zeros(root.shape), 0.0
    return _symmetric(_composed(vectors, 1 / values), root), float(values[0] * values[0])


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
