"""Compressed gradients as they are: DCGD, and gradient descent when nothing is compressed."""

from __future__ import annotations

import numpy as np

from mpisim.errors import InputError
from mpisim.estimators.base import Estimator, estimator
from mpisim.theory import stepsizes
from mpisim.theory.setting import Setting, Step


@estimator("naive")
class Naive(Estimator):
    """g^k = (1/n) sum_i C_i(grad f_i(x^k)) (Khirirat et al., 2018; SAQ calls it DCGD)."""

    def start(self, x: np.ndarray) -> np.ndarray:
        return self.estimate(x)

    def estimate(self, x: np.ndarray) -> np.ndarray:
        return self.star.average(self.compress(self.oracle.gradients(x)))

    def theory_step(self, setting: Setting) -> Step:
        if setting.omega == 0:
            return stepsizes.gradient_descent(setting)
        if not setting.convex:
            raise InputError(
                "method.stepsize: DCGD has a theorem for convex problems only; give a number"
            )
        return stepsizes.dcgd(setting)
