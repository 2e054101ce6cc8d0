"""Independent coordinates, each sent with its own probability and divided by it."""

from __future__ import annotations

import numpy as np

from mpisim.compressors.base import Compressor, compressor
from mpisim.compressors.block_quant import Scheme
from mpisim.compressors.worker_rows import WorkerRows
from mpisim.core.protocols import Uplink
from mpisim.core.rng import Draw
from mpisim.core.schema import require
from mpisim.theory import quantization as theory
from mpisim.theory.compression import FLOAT_BITS
from mpisim.wire.base import Message, same
from mpisim.wire.sparse import Seeded, SeededForm


@compressor("rand-tau", "rand-τ", {"tau": "τ"})
class RandTau(Compressor):
    """C(v)_j = v_j / p with probability p = tau / d, else 0, independently for all j.

    tau : expected number of coordinates sent, above 0 and at most d; d / n unless given

    omega = d / tau - 1, zeta = tau, cal-L(C, L) = (d / tau - 1) max_j L_jj, exactly. Workers draw
    independently, and the server redraws their coordinates: a message is the values. The papers
    charge 32 tau bits for any draw.
    """

    seeded = on_device = True
    tau: float | None = None

    def check(self) -> None:
        self._tau = self.d / self.n if self.tau is None else float(self.tau)
        allowed = f"above 0, at most d = {self.d}"
        require(0 < self._tau <= self.d, "compressor.tau", self._tau, allowed)
        self.p: WorkerRows | None = None
        self._common = np.full(self.d, self._tau / self.d)
        self._omega = theory.cal_L_independent(np.ones(self.d), self._common)

    def form(self, draw: Draw) -> SeededForm:
        p = self._common if self.p is None else self.p.of(draw)
        drawn = draw.uniforms(self.d) < p
        ptr = np.zeros(draw.workers + 1, np.int64)
        np.cumsum(drawn.sum(axis=1), out=ptr[1:])
        workers, indices = (np.ascontiguousarray(axis) for axis in np.nonzero(drawn))
        scale = self.d / self._tau if self.p is None else 1 / p[workers, indices]
        return SeededForm(self.d, draw.workers, self.precision, ptr, indices, scale)

    def compress(self, v: np.ndarray, draw: Draw) -> Seeded:
        return self.form(draw).take(v)

    @property
    def omega(self) -> float:
        return self._omega

    @property
    def density(self) -> float:
        return min(float(self.d), self._tau)

    def cal_L(self, matrix: np.ndarray, worker: int) -> float:
        p = self._common if self.p is None else self.p.one(worker)
        return theory.cal_L_independent(matrix.diagonal(), p)

    def paper_bits(self, message: Message) -> np.ndarray:
        return same(message.form.workers, round(FLOAT_BITS * self._tau))


@compressor("rand-tau-plus", "rand-τ+", {"tau": "τ"})
class RandTauPlus(RandTau):
    """C(v)_j = v_j / p_ij with probability p_ij: rand-tau+ of Safaryan et al. (2021).

    tau : sum_j p_ij, above 0 and at most d; d / n unless given
    scheme : "diana": probabilities for DIANA+, "dcgd": for DCGD+

    Inside `smooth` the p_ij are optimal for Diag(L_i). The server knows L_i^{1/2} and computes the
    same p_ij, so nothing more is sent. Outside they are those of L_i = I: rand-tau.
    omega_i = max_j 1/p_ij - 1 and cal-L_i = max_j (1/p_ij - 1) L_i;jj.

    This differs from the published code, which does not divide by p_ij and is biased.
    """

    scheme: Scheme = "diana"

    def fit(self, star: Uplink, diagonals: WorkerRows, n_mu: float) -> None:
        n_mu = n_mu if self.scheme == "diana" else 0.0
        self.p = diagonals.map(lambda row: theory.probabilities(row, self._tau, n_mu))
        own = [self.p.one(i) for i in range(star.first, star.first + star.m)]
        worst = [theory.cal_L_independent(np.ones(self.d), p) for p in own]
        self._omega = float(star.all_workers(np.array(worst).reshape(star.m, 1)).max())
