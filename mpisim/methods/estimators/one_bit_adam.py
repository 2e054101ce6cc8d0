"""1-bit Adam: Adam for a while, then compressed momentum with a frozen variance."""

from __future__ import annotations

from typing import Literal

import numpy as np

from mpisim.core.state import AtServer, PerWorker, Shared
from mpisim.methods.estimators.base import estimator
from mpisim.methods.estimators.batches import Stochastic
from mpisim.methods.optimizers import warmup_rounds


@estimator("1bit-adam")
class OneBitAdam(Stochastic):
    """1-bit Adam's communication (Tang et al., 2021, Algorithm 1); its optimizer has the same name.

    For the first ``warmup`` rounds g is the mean gradient, sent dense both ways. Then workers and
    server send the momentum, with error feedback:

    m_i^k = beta1 m^{k-1} + (1 - beta1) grad f_i(x^k)
    c_i^k = C(m_i^k + e_i^k),  e_i^{k+1} = m_i^k + e_i^k - c_i^k
    m^k   = C((1/n) sum_i c_i^k + e^k),  e^{k+1} = (1/n) sum_i c_i^k + e^k - m^k

    warmup : rounds, or a share of ``run.rounds``; 0.13 is the CD-Adam paper's (13 of 100 epochs).
    variant : "paper", or "code": as in the published CD-Adam code, workers send gradients instead
        of m_i^k, and the optimizer takes their momentum. Round ``warmup`` is dense there, too.
        (The code's sign has the scale |x|_2 / sqrt(d); here C is any compressor.)
    """

    warmup: int | float = 0.13
    variant: Literal["paper", "code"] = "paper"
    beta1: float = 0.9

    e_i = PerWorker("what C lost")
    e = AtServer("what the server's C lost")
    m = Shared("momentum")

    def check(self) -> None:
        super().check()
        self.warmup = warmup_rounds(self.warmup, self.star.rounds)
        # There, a gradient is compressed by the number of the last step, one less than its own.
        self.dense = self.warmup + (self.variant == "code" and self.warmup > 0)

    def start(self, x: np.ndarray) -> np.ndarray:
        self.e_i = self.star.zeros(self.star.m, len(x))
        self.e, self.m = self.star.zeros(len(x)), self.star.zeros(len(x))
        return self.estimate(x)

    def estimate(self, x: np.ndarray) -> np.ndarray:
        gradients = self.gradients(x)
        if self.star.round < self.dense:
            mean = self.star.mean(self.star.dense(gradients))
            g = self.star.broadcast(mean)
            self.star.estimated(mean, g)
            self.m = self.beta1 * self.m + (1 - self.beta1) * g
            return g
        code = self.variant == "code"
        m_i = gradients if code else self.beta1 * self.m + (1 - self.beta1) * gradients
        v_i = m_i + self.e_i
        c_i = self.compress(v_i)
        self.e_i = v_i - c_i.decoded()
        v = self.star.mean(c_i) + self.e
        self.m = self.star.broadcast(v, self.compressor)
        self.e = v - self.m
        return self.m
