"""ADIANA and CANITA: DIANA, accelerated, with a control point."""

from __future__ import annotations

import dataclasses
from math import inf, sqrt

import numpy as np

from mpisim.core.schema import require
from mpisim.core.state import Shared
from mpisim.methods.estimators.base import Theory, estimator, probability, unbiased
from mpisim.methods.estimators.diana import DianaFamily
from mpisim.theory import derived
from mpisim.theory.setting import Setting, Step


@estimator("adiana")
class Adiana(DianaFamily):
    """ADIANA: accelerated DIANA (Li, Kovalev, Qian, Richtarik, 2020, arXiv 2002.11364).

    x^k       = theta_1 z^k + w^k / 2 + (1/2 - theta_1) y^k
    g^k       = h^k + (1/n) sum_i Q(grad f_i(x^k) - h_i^k)
    h_i^{k+1} = h_i^k + alpha Q(grad f_i(w^k) - h_i^k)
    y^{k+1}   = x^k - eta g^k
    z^{k+1}   = beta z^k + (1 - beta) x^k + (gamma / eta) (y^{k+1} - x^k)
    w^{k+1}   = y^k with probability p, else w^k

    mu : of the strongly convex f, which decides theta_1 = min(1/4, sqrt(eta mu / p)),
        gamma = eta / (2 (theta_1 + eta mu)) and beta = 1 - gamma mu
    p : all workers share the coin; "theory" is 1 / (1 + omega)
    alpha : as for DIANA

    The step size is eta, and the log's x^k is y^k. All points start at x^0, and shifts at 0. A
    worker sends two messages a round.
    """

    mu: float = dataclasses.field(kw_only=True)
    p: float | Theory = "theory"
    alpha: float | Theory = "theory"

    server_stepsize = 1.0
    estimates_gradient = False
    w = Shared("control point")
    z = Shared("z^k")

    def check(self) -> None:
        super().check()
        require(0 < self.mu < inf, "method.mu", self.mu, "a finite number > 0")
        self.p = probability(self.p, 1 / (1 + (self.compressor.shift_omega or 0.0)))

    def start(self, x: np.ndarray) -> np.ndarray:
        self.start_shifts(x)
        self.w = self.z = x
        return self.estimate(x)

    def estimate(self, x: np.ndarray) -> np.ndarray:
        y, eta, mu, p = x, self.star.stepsize, self.mu, float(self.p)
        theta = min(1 / 4, sqrt(eta * mu / p))
        gamma = eta / (2 * (theta + eta * mu))
        x = theta * self.z + self.w / 2 + (1 / 2 - theta) * y
        mean = self.star.mean(self.compress(self.oracle.gradients(x) - self.h_i))
        g = self.star.broadcast(self.h + mean)
        self.collect(self.oracle.gradients(self.w))  # moves the shifts
        self.z = (1 - gamma * mu) * self.z + gamma * mu * x - gamma * g
        self.w = y if self.star.coin(p) else self.w
        return y - (x - eta * g)

    def step_of(self, setting: Setting) -> Step:
        return derived.adiana(setting, self.mu, float(self.p), float(self.alpha))


@estimator("canita")
class Canita(DianaFamily):
    """CANITA (Li and Richtarik, 2021, arXiv 2107.09461): accelerated, for convex f without mu.

    y^k       = theta_k x^k + (1 - theta_k) w^k
    g^k       = h^k + (1/n) sum_i Q(grad f_i(y^k) - h_i^k)
    h_i^{k+1} = h_i^k + alpha Q(grad f_i(w^k) - h_i^k)
    x^{k+1}   = x^k - (eta / theta_k) g^k
    z^{k+1}   = theta_k x^{k+1} + (1 - theta_k) w^k
    w^{k+1}   = z^{k+1} with probability p, else w^k

    p : all workers share the coin; "theory" is 1 / (1 + b), b = min(omega, sqrt(omega (1 + omega)^2
        / n))
    alpha : in (0, 1]; "theory" is 1 / (1 + omega)

    theta_k = 2 / (p (k + a)) with a = max(4 / p, 8 / alpha). The step size is eta, and the log's
    x^k is w^k. All points start at x^0, and shifts at 0. A worker sends two messages a round.

    Of the paper only the abstract was at hand. So these lines, theta_k and the step "theory" are
    derived (`mpisim.theory.derived`), and the paper's may differ: the rate here is of the
    abstract's order only for omega <= n, and only in the term of |x^0 - x*|^2.
    """

    p: float | Theory = "theory"
    alpha: float | Theory = "theory"

    server_stepsize = 1.0
    estimates_gradient = False
    x = Shared("x^k")

    def check(self) -> None:
        omega = 0.0
        if "theory" in (self.p, self.alpha):
            omega = unbiased(self.compressor, self.compressor.shift_omega, "p")
        self.p = probability(self.p, derived.canita_probability(omega, self.star.n))
        self.alpha = probability(self.alpha, 1 / (1 + omega), "alpha")
        self.a = max(4 / self.p, 8 / self.alpha)

    def start(self, x: np.ndarray) -> np.ndarray:
        self.start_shifts(x)
        self.x = x
        return self.estimate(x)

    def estimate(self, x: np.ndarray) -> np.ndarray:
        w, eta, p = x, self.star.stepsize, float(self.p)
        theta = 2 / (p * (self.star.round + self.a))
        y = theta * self.x + (1 - theta) * w
        mean = self.star.mean(self.compress(self.oracle.gradients(y) - self.h_i))
        g = self.star.broadcast(self.h + mean)
        self.collect(self.oracle.gradients(w))  # moves the shifts
        self.x = self.x - eta / theta * g
        z = theta * self.x + (1 - theta) * w
        return w - z if self.star.coin(p) else 0 * w

    def step_of(self, setting: Setting) -> Step:
        return derived.canita(setting, float(self.p), float(self.alpha))
