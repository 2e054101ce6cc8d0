"""Messages that are sent only where they say something: LAG and CLAG, of the 3PC family."""

from __future__ import annotations

from math import inf

import numpy as np

from mpisim.core.arrays import FALLBACK, to_host
from mpisim.core.numerics.sums import squared_norms
from mpisim.core.schema import require
from mpisim.core.state import AtServer, PerWorker
from mpisim.methods.estimators.base import Estimator, estimator
from mpisim.theory import stepsizes
from mpisim.theory.setting import Setting, Step


@estimator("clag")
class CLAG(Estimator):
    """CLAG: EF21 whose workers skip messages (Richtarik et al., 2022, 3PC, arXiv 2202.00998).

    g_i^{t+1} = g_i^t + C(grad f_i(x^{t+1}) - g_i^t)
                if |grad f_i(x^{t+1}) - g_i^t|^2 > zeta |grad f_i(x^{t+1}) - grad f_i(x^t)|^2,
                else g_i^t
    g^{t+1}   = (1/n) sum_i g_i^{t+1}

    zeta : the trigger, a number >= 0; 0 is EF21, and with the identity as C this is LAG

    Every worker sends a bit, which says whether a message follows. g_i^0 = grad f_i(x^0).
    """

    zeta: float

    replayed = False  # who sends depends on values
    grad = PerWorker("grad f_i(x^t)")
    g_i = PerWorker("what the server knows of it")
    g = AtServer("their mean")

    def check(self) -> None:
        require(0 <= self.zeta < inf, "method.zeta", self.zeta, "a finite number >= 0")

    def start(self, x: np.ndarray) -> np.ndarray:
        self.grad = self.oracle.gradients(x)
        c_i = self.star.dense(self.grad)
        self.g_i, self.g = c_i.decoded(), self.star.mean(c_i)
        return self.star.broadcast(self.g)

    def estimate(self, x: np.ndarray) -> np.ndarray:
        star, old = self.star, self.grad
        self.grad = self.oracle.gradients(x)
        away = self.grad - self.g_i
        senders = star.flags(squares(away) > self.zeta * squares(self.grad - old))
        if senders.size:
            begin, end = np.searchsorted(senders, (star.first, star.first + star.m))
            local = senders[begin:end] - star.first
            c_i = star.compress(self.compressor, away[local], clients=senders)
            self.g_i[local] = self.g_i[local] + c_i.decoded()
            self.g = self.g + senders.size / star.n * star.mean(c_i)
        return star.broadcast(self.g)

    def theory_step(self, setting: Setting) -> Step:
        return stepsizes.clag(setting, self.zeta)


def squares(rows: np.ndarray) -> np.ndarray:
    """|row|^2 of each row (m, d), shape (m,), on the host."""
    return squared_norms(to_host(rows, FALLBACK)).astype(np.float64)
