"""LoCoDL: local steps at the workers and at a point that all share, and compressed differences."""

from __future__ import annotations

from math import inf

import numpy as np

from mpisim.core.schema import require
from mpisim.core.state import PerWorker, Shared
from mpisim.methods.estimators.base import Estimator, Theory, estimator, probability, unbiased
from mpisim.theory import stepsizes
from mpisim.theory.setting import Setting, Step


@estimator("locodl")
class LoCoDL(Estimator):
    """LoCoDL (Condat, Maranjyan, Richtarik, 2024, arXiv 2403.04348), with g(y) = (mu/2) |y|^2.

    f = (1/n) sum_i (f_i - g) + g, and in each step

        x_i = x_i - gamma (grad (f_i - g)(x_i) - u_i),  y = y - gamma (mu y - v)

    If a coin that all share shows 1, which ends a round:

        d_i = C_i(x_i - y),  d = (1/(2 n)) sum_j d_j
        x_i = (1 - rho) x_i + rho (y + d),  y = y + rho d
        u_i = u_i + (p chi / (gamma (1 + 2 omega))) (d - d_i)
        v   = v + (p chi / (gamma (1 + 2 omega))) d

    p : the probability that the coin shows 1
    mu : of g; at most the strong convexity of the f_i
    chi, rho : "theory" is n / (n + omega)

    The log's x^k is y. C is unbiased, and workers draw independently. u_i^0 = v^0 = 0.
    """

    p: float
    mu: float
    chi: float | Theory = "theory"
    rho: float | Theory = "theory"

    server_stepsize = 1.0
    estimates_gradient = False
    points = "x_i"
    x_i = PerWorker("points of the workers")
    u_i = PerWorker("control variates")
    v = Shared("control variate of y")

    def check(self) -> None:
        self.omega, n = unbiased(self.compressor, self.compressor.omega, "chi"), self.star.n
        require(0 < self.mu < inf, "method.mu", self.mu, "a finite number > 0")
        self.p = probability(self.p, self.p)
        self.chi = probability(self.chi, n / (n + self.omega), "chi")
        self.rho = probability(self.rho, n / (n + self.omega), "rho")

    def start(self, x: np.ndarray) -> np.ndarray:
        self.x_i = self.star.zeros(self.star.m, len(x)) + x
        self.u_i = 0 * self.x_i
        self.v = 0 * x
        return self.estimate(x)

    def estimate(self, x: np.ndarray) -> np.ndarray:
        gamma, mu, rho, x_i, y = self.star.stepsize, self.mu, float(self.rho), self.x_i, x
        for _ in range(self.star.flips(self.p)):
            x_i = x_i - gamma * (self.oracle.gradients(x_i) - mu * x_i - self.u_i)
            y = y - gamma * (mu * y - self.v)
        d_i = self.compress(x_i - y)
        d = self.star.average(d_i) / 2
        self.x_i = (1 - rho) * x_i + rho * (y + d)
        factor = self.p * float(self.chi) / (gamma * (1 + 2 * self.omega))
        self.u_i = self.u_i + factor * (d - d_i.decoded())
        self.v = self.v + factor * d
        return x - (y + rho * d)

    def theory_step(self, setting: Setting) -> Step:
        return stepsizes.locodl(setting, self.mu)
