"""Quantization with steps for blocks of coordinates or for each, also fitted to smoothness."""

from __future__ import annotations

from abc import abstractmethod
from typing import Literal

import numpy as np

from mpisim.compressors.base import WorkerRows, compressor
from mpisim.compressors.quantization import Norm, Stepped, levels_or_saq
from mpisim.core.numerics.sums import norm
from mpisim.core.protocols import Uplink
from mpisim.core.rng import Draw
from mpisim.core.schema import require
from mpisim.theory import quantization as theory
from mpisim.wire.codecs import CodecName


class Fitted(Stepped):
    """Steps that `smooth` fits to Diag(L_i) and sends once, unless they are ``fixed``.

    Workers and server use the decoded steps. Outside `smooth` no L_i is known: steps are those of
    L_i = I for all workers, and nothing is sent before round 0.
    """

    scheme: theory.Scheme
    fixed: bool  # steps do not depend on L_i

    @abstractmethod
    def resolve(self) -> None:
        """Set ``starts`` and what `steps_of` needs; `InputError` if a parameter does not fit."""

    @abstractmethod
    def steps_of(self, diagonal: np.ndarray, n_mu: float) -> np.ndarray:
        """h_i for Diag(L_i), one for each coordinate or block; n_mu as in the theory."""

    @abstractmethod
    def bound(self, diagonal: np.ndarray, h: np.ndarray) -> float:
        """The bound of cal-L(C_i, L_i): (10) or (14)."""

    @abstractmethod
    def euclidean_nonzeros(self, h: np.ndarray) -> float:
        """The bound of the expected number of non-zero levels, for the Euclidean norm."""

    def nonzeros(self, h: np.ndarray) -> float:
        """`euclidean_nonzeros`, or sum_j min(1, 1/h_j), as |v_j| <= |v|_inf."""
        if self.norm == "2":
            return self.euclidean_nonzeros(h)
        return float(np.minimum(1.0, self._levels(h)).sum())

    def check(self) -> None:
        super().check()
        self.resolve()
        self.h: WorkerRows | None = None
        ones = np.ones(self.d)
        self._common = self.steps_of(ones, 0.0)
        self._s = self._levels(self._common)
        self._worst = self.bound(ones, self._common), self.nonzeros(self._common)

    def fit(self, star: Uplink, diagonals: WorkerRows, n_mu: float) -> None:
        if self.fixed:
            return
        n_mu = n_mu if self.scheme == "diana" else 0.0
        workers = range(star.first, star.first + star.m)
        steps = [self.steps_of(diagonals.one(i), n_mu) for i in workers]
        rows = np.array(steps).reshape(star.m, self._common.size)
        self.h = WorkerRows(*star.send_once(rows)).map(lambda h: h.astype(np.float64))
        self._s = np.array([self._levels(h) for h in self.h.rows])
        self._forms.clear()
        bounds = []
        for i in workers:
            ones, h = theory.sent_ones(diagonals.one(i), n_mu), self.h.one(i)
            bounds.append((self.bound(ones, h), self.nonzeros(h)))
        worst = star.all_workers(np.array(bounds).reshape(star.m, 2)).max(axis=0)
        self._worst = float(worst[0]), float(worst[1])

    def _levels(self, h: np.ndarray) -> np.ndarray:
        """s_j = 1 / h_j, shape (d,)."""
        return np.repeat(1 / h, np.diff(self.starts)) if h.size < self.d else 1 / h

    def scales(self, draw: Draw) -> np.ndarray:
        return self._s if self.h is None else WorkerRows(self.h.first, self._s).of(draw)

    @property
    def omega(self) -> float:
        """omega_max = max_i omega_i, from the bound of cal-L(C_i, I)."""
        return self._worst[0]

    @property
    def density(self) -> float:
        return self._worst[1]

    def cal_L(self, matrix: np.ndarray, worker: int) -> float:
        h = self._common if self.h is None else self.h.one(worker)
        return self.bound(matrix.diagonal(), h)


class Blocks(Fitted):
    """The same step for all coordinates of a block.

    B is ``blocks``, from 1 to d, or n unless given; blocks have floor(d / B) coordinates, the last
    one also the rest.
    """

    blocks: int | None

    def resolve(self) -> None:
        count = min(self.n, self.d) if self.blocks is None else self.blocks
        allowed = f"an integer from 1 to d = {self.d}"
        require(1 <= count <= self.d, "compressor.blocks", count, allowed)
        self.starts = theory.block_starts(self.d, count)

    def bound(self, diagonal: np.ndarray, h: np.ndarray) -> float:
        return theory.cal_L_blocks(diagonal, self.starts, h)

    def euclidean_nonzeros(self, h: np.ndarray) -> float:
        """sum_l min(d_l, sqrt(d_l) / h_l), as E|C(v^l)|_0 <= |v^l|_1 / (|v^l| h_l)."""
        sizes = np.diff(self.starts)
        return float(np.minimum(sizes, np.sqrt(sizes) / h).sum())


@compressor("block-quant", "block quantization", {"blocks": "blocks", "s": "s"})
class BlockQuant(Blocks):
    """QSGD of each of B blocks of coordinates, each with its own norm, all with the same s.

    blocks : B, from 1 to d; n unless given
    s : number of levels, 1 to 2**31 - 1; as for ``qsgd`` unless given

    norm : "2" or "inf"

    omega = max_l min(d_l / s^2, sqrt(d_l) / s); zeta = sum_l min(d_l, s sqrt(d_l)),
    or d with "inf".
    """

    blocks: int | None = None
    s: int | None = None
    norm: Norm = "2"
    codec: CodecName = "elias"
    fixed = True

    def resolve(self) -> None:
        super().resolve()
        self._scale = levels_or_saq(self.s, self.d, self.n)

    def steps_of(self, diagonal: np.ndarray, n_mu: float) -> np.ndarray:
        return np.full(self.starts.size - 1, 1 / self._scale)

    def scales(self, draw: Draw) -> np.ndarray:
        return np.array([float(self._scale)])


@compressor("block-quant-plus", "block quantization+", {"blocks": "blocks", "beta": "β"})
class BlockQuantPlus(Blocks):
    """Block quantization with smoothness-aware steps: SAQ, Definition 3, Appendices D.2 and D.3.

    blocks : B, from 1 to d; n unless given
    beta : sets the bits, sum_l (1/h_l^2 + sqrt(d_l) / h_l) + B = beta; above B; d / n + B unless
        given
    scheme : "diana": steps for DIANA+ (D.3), "dcgd": for DCGD+ (D.2)
    steps : "root": with equality above; "stated": the formula of D.3 (the published code's for
        DIANA+); "bound": the upper bound of D.2 and D.3 (the code's for DCGD+); "fixed": the same
        step for all blocks, without smoothness
    norm : "2" or "inf"

    omega_i = max_l min(h_l^2 d_l, h_l sqrt(d_l)); cal-L_i by (10).
    """

    blocks: int | None = None
    beta: float | None = None
    scheme: theory.Scheme = "diana"
    steps: theory.BlockRule = "root"
    norm: Norm = "2"
    codec: CodecName = "elias"

    def resolve(self) -> None:
        super().resolve()
        blocks = self.starts.size - 1
        beta = self.d / self.n + blocks if self.beta is None else self.beta
        allowed = f"a number above blocks = {blocks} and below 2^106"
        require(blocks < beta < 2**106, "compressor.beta", beta, allowed)
        self._beta, self.fixed = float(beta), self.steps == "fixed"

    def steps_of(self, diagonal: np.ndarray, n_mu: float) -> np.ndarray:
        return theory.block_steps(diagonal, self.starts, self._beta, n_mu, self.steps)


@compressor("quant-plus", "quantization+", {"beta": "β"})
class QuantPlus(Fitted):
    """C(v)_j = |v| sign(v_j) k_j h_ij, k_j rounded at random: SAQ, Definition 4, Appendix E.

    beta : |h_i^-1|, a bound of the expected sum of levels; d / n unless given
    scheme : "diana": steps for DIANA+ (28), "dcgd": for DCGD+ (25)
    steps : "varying"; "fixed": one step for all coordinates, sqrt(d) / beta, which is n / sqrt(d)
        for beta = d / n (no smoothness; only L_i^{1/2} is sent before round 0)
    norm : "2" or "inf"

    omega_i = min(sum_j h_ij^2, |h_i|), cal-L_i by (14); zeta = min(d, |h^-1|), as
    E|C(v)|_0 <= sum_j |v_j| / (|v| h_j).
    """

    beta: float | None = None
    scheme: theory.Scheme = "diana"
    steps: Literal["varying", "fixed"] = "varying"
    norm: Norm = "2"
    codec: CodecName = "elias"

    def resolve(self) -> None:
        beta = self.d / self.n if self.beta is None else self.beta
        require(0 < beta < 2**53, "compressor.beta", beta, "a number above 0 and below 2^53")
        self._beta, self.fixed = float(beta), self.steps == "fixed"
        self.starts = np.array([0, self.d])

    def steps_of(self, diagonal: np.ndarray, n_mu: float) -> np.ndarray:
        if self.fixed:
            return np.full(self.d, theory.fixed_step(self.d, self._beta))
        return theory.varying_steps(diagonal, self._beta, n_mu)

    def bound(self, diagonal: np.ndarray, h: np.ndarray) -> float:
        return theory.cal_L_varying(diagonal, h)

    def euclidean_nonzeros(self, h: np.ndarray) -> float:
        return min(float(self.d), norm(1 / h))
