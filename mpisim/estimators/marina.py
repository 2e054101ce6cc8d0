"""MARINA: compressed gradient differences, and a full gradient now and then."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mpisim.estimators.base import Estimator, Theory, estimator
from mpisim.params import require
from mpisim.theory import stepsizes
from mpisim.theory.setting import Setting, Step


@estimator("marina")
class Marina(Estimator):
    """MARINA, Algorithm 1 (Gorbunov et al., 2021).

    p : probability of a round with full gradients; "theory" is zeta_Q / d (Corollary 2.1).

    Where this differs from the published code: workers draw independently, and what they send is
    the compressed difference, which the server adds to its g^k, not the sum of both.
    """

    p: float | Theory = "theory"
    worker_state: ClassVar[tuple[str, ...]] = ("grad",)
    server_state: ClassVar[tuple[str, ...]] = ("g",)

    def check(self) -> None:
        if self.p == "theory":
            self.p = stepsizes.marina_probability(self.compressor.density, self.compressor.d)
        require(0 < float(self.p) <= 1, "method.p", self.p, 'a number in (0, 1] or "theory"')

    def start(self, x: np.ndarray) -> np.ndarray:  # line 1: g^0 = grad f(x^0)
        self.grad = self.oracle.later(x)
        self.g = self.star.mean(self.star.dense(self.grad))
        return self.star.broadcast(self.g)

    def estimate(self, x: np.ndarray) -> np.ndarray:  # lines 3-9
        old, self.grad = self.grad, self.oracle.later(x)
        if self.star.coin(float(self.p)):  # c_k = 1
            self.g = self.star.mean(self.star.dense(self.grad))
        else:  # g^{k+1} = g^k + (1/n) sum_i Q(grad f_i(x^{k+1}) - grad f_i(x^k))
            self.g = self.g + self.star.mean(self.compress(self.grad - old))
        return self.star.broadcast(self.g)

    def theory_step(self, setting: Setting) -> Step:
        return stepsizes.marina(setting, float(self.p))
