"""MARINA: compressed gradient differences, and full gradients in some rounds."""

from __future__ import annotations

import numpy as np

from mpisim.core.state import AtServer, PerWorker
from mpisim.methods.estimators.base import Estimator, Theory, estimator, probability
from mpisim.theory import stepsizes, tables
from mpisim.theory.setting import MarinaTheorem, Setting, Step
from mpisim.theory.tables import Case, Guarantee


class MarinaFamily(Estimator):
    """What MARINA and PP-MARINA share: p, and g^0 = grad f(x^0)."""

    p: float | Theory

    grad = PerWorker("grad f_i(x^k)")
    g = AtServer("g^k")

    def check(self) -> None:
        self.p = probability(self.p, self.theory_p())

    def theory_p(self) -> float:
        """p by the corollary."""
        return stepsizes.marina_probability(self.compressor.density, self.compressor.d)

    def start(self, x: np.ndarray) -> np.ndarray:  # line 2: g^0 = grad f(x^0)
        self.grad = self.oracle.lazy_gradients(x)
        self.g = self.star.mean(self.star.dense(self.grad))
        return self.star.broadcast(self.g)


@estimator("marina")
class Marina(MarinaFamily):
    """MARINA, Algorithm 1 (Gorbunov et al., 2021; PermK paper, Algorithm 1).

    p : probability of a round with full gradients; "theory" is zeta_Q / d (Corollary 2.1).
    theorem : of a "theory" step: "marina", with one L for f and the f_i, or "permk", the PermK
        paper's with L_-, L_+ and L_±; always the latter for correlated compressors.

    This differs from the published code: workers draw independently, and they send the compressed
    difference, which the server adds to its g^k, not the sum of both.
    """

    p: float | Theory = "theory"
    theorem: MarinaTheorem = "marina"
    permk_tables = True

    def check(self) -> None:
        super().check()
        if self.compressor.correlated:
            self.theorem = "permk"

    def estimate(self, x: np.ndarray) -> np.ndarray:  # lines 4-10
        old, self.grad = self.grad, self.oracle.lazy_gradients(x)
        if self.star.coin(float(self.p)):  # c_k = 1
            self.g = self.star.mean(self.star.dense(self.grad))
        else:  # g^{k+1} = g^k + (1/n) sum_i Q(grad f_i(x^{k+1}) - grad f_i(x^k))
            self.g = self.g + self.star.mean(self.compress(self.grad - old))
        return self.star.broadcast(self.g)

    def theory_step(self, setting: Setting) -> Step:
        return stepsizes.marina(setting, float(self.p), self.theorem)

    def guarantees(self, case: Case) -> list[Guarantee]:
        if case.setting.omega is None:
            return []
        return [tables.marina(case, float(self.p), self.theorem)]
