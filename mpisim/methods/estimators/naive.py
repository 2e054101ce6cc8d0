"""Compressed gradients: DCGD, and gradient descent without compression."""

from __future__ import annotations

import numpy as np

from mpisim.methods.estimators.base import Direction, estimator
from mpisim.methods.estimators.batches import Stochastic
from mpisim.theory import saq, stepsizes
from mpisim.theory.setting import Setting, Step


@estimator("naive")
class Naive(Stochastic):
    """g^k = (1/n) sum_i C_i(grad f_i(x^k)) (Khirirat et al., 2018; SAQ calls it DCGD).

    direction : "both": the server also compresses the mean.
    """

    direction: Direction = "up"

    def start(self, x: np.ndarray) -> np.ndarray:
        return self.estimate(x)

    def estimate(self, x: np.ndarray) -> np.ndarray:
        c_i = self.compress(self.gradients(x))
        mean = self.star.mean(c_i)
        g = self.star.broadcast(mean, self.compressor if self.direction == "both" else None)
        self.star.estimated(mean, g)
        return g

    def full_step(self, setting: Setting) -> Step:
        if setting.omega == 0:
            return stepsizes.gradient_descent(setting)
        if not setting.convex:
            raise stepsizes.theorem_only_for("DCGD", "convex problems")
        return stepsizes.dcgd(setting)

    def rate(self, setting: Setting) -> saq.Rate:
        self.theory_step(setting)  # its error is the reason
        return saq.theorem_1(setting, self.compressor.shift_omega)
