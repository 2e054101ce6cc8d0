"""VR-DIANA: DIANA with loopless variance reduction at the workers."""

from __future__ import annotations

import dataclasses

import numpy as np

from mpisim.core.state import PerWorker, Shared
from mpisim.methods.estimators.base import Theory, estimator, probability
from mpisim.methods.estimators.batches import batch_size
from mpisim.methods.estimators.diana import DianaFamily
from mpisim.theory import stepsizes
from mpisim.theory.setting import Setting, Step


@estimator("vr-diana")
class VRDiana(DianaFamily):
    """VR-DIANA, Variant 1 (loopless control point; Horvath et al., 2019).

    g_i^k     = (1/b') sum_j (grad f_ij(x^k) - grad f_ij(w^k)) + grad f_i(w^k)
    m_i^k     = Q(g_i^k - h_i^k)
    g^k       = h^k + (1/n) sum_i m_i^k
    h_i^{k+1} = h_i^k + alpha m_i^k
    w^{k+1}   = x^k with probability p, else w^k

    batch : b', a number of samples or a share of m; drawn without replacement.
    p : "theory" is b' / m. All workers share the coin.
    alpha : as for DIANA.

    Shifts start at 0 and w^0 = x^0. This differs from the published MARINA experiments: there,
    workers got x = 0 in every round, so that the iterates moved along -grad f(0) only.
    """

    batch: int | float = dataclasses.field(kw_only=True)
    p: float | Theory = "theory"
    alpha: float | Theory = "theory"

    w = Shared("control point")
    mu_i = PerWorker("grad f_i(w)")

    def check(self) -> None:
        self.b = batch_size(self.batch, self.oracle.samples, "batch")
        self.p = probability(self.p, self.b / self.oracle.samples)
        super().check()

    def start(self, x: np.ndarray) -> np.ndarray:
        self.start_shifts(x)
        self.w, self.mu_i = x, self.oracle.gradients(x)
        return self.send(self.mu_i)  # at x^0 = w^0 the minibatch difference is 0

    def estimate(self, x: np.ndarray) -> np.ndarray:
        batch = self.star.draw("batch").batches(self.oracle.rows, self.b)
        g_i = self.oracle.batch_changes(x, self.w, batch) + self.mu_i
        if self.star.coin(float(self.p)):
            self.w, self.mu_i = x, self.oracle.gradients(x)
        return self.send(g_i)

    def batch_sizes(self) -> dict[str, int]:
        return {"batch": self.b}

    def theory_step(self, setting: Setting) -> Step:
        return stepsizes.vr_diana(setting, self.oracle.samples / self.b)
