"""Scaffnew: local steps until a coin says so, and control variates that make them worth it."""

from __future__ import annotations

import dataclasses

import numpy as np

from mpisim.core.state import PerWorker
from mpisim.methods.estimators.base import estimator, probability
from mpisim.methods.estimators.batches import Stochastic
from mpisim.theory import stepsizes
from mpisim.theory.setting import Setting, Step


@estimator("scaffnew")
class Scaffnew(Stochastic):
    """Scaffnew, which is ProxSkip for averages (Mishchenko et al., 2022, Algorithm 2).

    x_i^ = x_i - gamma (g_i(x_i) - h_i)
    x_i  = (1/n) sum_j x_j^  if a coin that all workers share shows 1, else x_i^
    h_i  = h_i + (p / gamma) (x_i - x_i^)

    p : the probability that the coin shows 1; sqrt(mu / L) is the best
    batch : samples of g_i, or a share of m, drawn anew in each step, without replacement; full
        gradients unless given

    A round of the log ends with a coin that shows 1: it has 1 / p steps on average, and x^k is the
    mean, which all workers get. They send C(x_i^ - x^k), and h_i follows what was sent, so that the
    h_i add up to 0. Messages of float32 leave this sum at the rounding of what was sent.
    """

    p: float = dataclasses.field(kw_only=True)

    server_stepsize = 1.0
    h_i = PerWorker("control variates")

    def check(self) -> None:
        super().check()
        self.p = probability(self.p, self.p)

    def start(self, x: np.ndarray) -> np.ndarray:
        self.h_i = self.star.zeros(self.star.m, len(x))
        return self.estimate(x)

    def estimate(self, x: np.ndarray) -> np.ndarray:
        gamma, p = self.star.stepsize, self.p
        x_i = self.star.zeros(self.star.m, len(x)) + x
        for _ in range(self.star.flips(p)):
            x_i -= gamma * (self.gradients(x_i) - self.h_i)
        dx_i = self.compress(x_i - x)
        dx = self.star.average(dx_i)
        self.h_i = self.h_i + (p / gamma) * (dx - dx_i.decoded())
        return -dx

    def full_step(self, setting: Setting) -> Step:
        return stepsizes.scaffnew(setting)
