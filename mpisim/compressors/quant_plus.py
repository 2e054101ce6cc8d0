"""Quantization with varying steps: a step for each coordinate of each worker."""

from __future__ import annotations

from typing import Literal

import numpy as np

from mpisim.compressors.base import compressor
from mpisim.compressors.block_quant import Fitted, Norm, Scheme
from mpisim.core.numerics.sums import norm
from mpisim.core.schema import require
from mpisim.theory import quantization as theory
from mpisim.wire.codecs import CodecName


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
    scheme: Scheme = "diana"
    steps: Literal["varying", "fixed"] = "varying"
    norm: Norm = "2"
    codec: CodecName = "elias"

    def resolve(self) -> None:
        beta = self.d / self.n if self.beta is None else self.beta
        require(0 < beta < np.inf, "compressor.beta", beta, "a finite number above 0")
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
