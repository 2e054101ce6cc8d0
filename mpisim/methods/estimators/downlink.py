"""Compression on the way down: the workers' points follow x^k, which only the server knows."""

from __future__ import annotations

import dataclasses

import numpy as np

from mpisim.compressors.base import Compressor
from mpisim.core.state import AtServer, PerWorker, Shared
from mpisim.methods.estimators.base import Estimator, Theory, estimator, probability
from mpisim.methods.estimators.diana import DianaFamily
from mpisim.theory import derived, stepsizes, tables
from mpisim.theory.setting import Setting, Step
from mpisim.theory.tables import Case, Guarantee


@estimator("ef21-p")
class EF21P(DianaFamily):
    """EF21-P + DIANA (Gruntkowska, Tyurin, Richtarik, 2022, arXiv 2209.15218).

    w^k       = w^{k-1} + C(x^k - w^{k-1}), sent by the server
    m_i^k     = Q(grad f_i(w^k) - h_i^k)
    g^k       = h^k + (1/n) sum_i m_i^k
    h_i^{k+1} = h_i^k + alpha m_i^k

    down : C, the compressor of what the server sends, such as { name = "topk", k = 10 }
    alpha : as for DIANA

    w^0 = x^0 and h_i^0 = 0. Without a ``[compressor]`` Q is the identity, and this is EF21-P with
    gradient descent.
    """

    down: Compressor = dataclasses.field(kw_only=True)
    alpha: float | Theory = "theory"

    server_point = True
    w = Shared("what the workers know of x^k")

    def check(self) -> None:
        super().check()
        self.down = self.bind_key("down", self.down, self.compressor.d)

    def start(self, x: np.ndarray) -> np.ndarray:
        self.start_shifts(x)
        self.w = x
        return self.collect(self.oracle.gradients(x))

    def estimate(self, x: np.ndarray) -> np.ndarray:
        self.w = self.w + self.star.broadcast(x - self.w, self.down)
        return self.collect(self.oracle.gradients(self.w))

    def step_of(self, setting: Setting) -> Step:
        if self.down.alpha is None:
            raise stepsizes.theorem_only_for("EF21-P", "contractive compressors as method.down")
        return derived.ef21_p(setting, self.down.alpha)

    def guarantees(self, case: Case) -> list[Guarantee]:
        """Without compression up: w^0 = x^0, so that there is no error at the start."""
        if case.setting.omega != 0:
            return []
        return [tables.derived(case, "EF21-P", self.theory_step(case.setting), case.setting.d)]


@estimator("marina-p")
class MarinaP(Estimator):
    """MARINA-P (Gruntkowska, Tyurin, Richtarik, 2024, arXiv 2402.06412).

    w_i^k = x^k with probability p, for all workers, else w_i^{k-1} + Q_i(x^k - x^{k-1})
    g^k   = (1/n) sum_i C(grad f_i(w_i^k))

    down : Q, another draw for each worker: { name = "permk" } sends them disjoint parts of x
    p : probability of a round in which all get x^k; "theory" is zeta_Q / d, so that such rounds
        cost as much as the others

    w_i^0 = x^0. Without a ``[compressor]`` workers send their gradients uncompressed.
    """

    down: Compressor
    p: float | Theory = "theory"

    server_point = True
    points = "w_i"
    w_i = PerWorker("points of the workers")
    x = AtServer("x^{k-1}")

    def check(self) -> None:
        self.down = self.bind_key("down", self.down, self.compressor.d)
        theory = stepsizes.marina_probability(self.down.density, self.down.d)
        self.p = probability(self.p, theory)

    def start(self, x: np.ndarray) -> np.ndarray:
        self.x, self.w_i = x, self.star.zeros(self.star.m, len(x)) + x
        return self.gradient()

    def estimate(self, x: np.ndarray) -> np.ndarray:
        old, self.x = self.x, x
        if self.star.coin(float(self.p)):
            self.w_i = 0 * self.w_i + self.star.broadcast(x)
        else:
            self.w_i = self.w_i + self.star.send(x - old, self.down)
        return self.gradient()

    def gradient(self) -> np.ndarray:
        """g^k, at the server."""
        return self.star.mean(self.compress(self.oracle.gradients(self.w_i)))

    def theory_step(self, setting: Setting) -> Step:
        if self.down.omega is None:
            raise stepsizes.theorem_only_for("MARINA-P", "unbiased compressors as method.down")
        return derived.marina_p(setting, self.down.omega, float(self.p))

    def guarantees(self, case: Case) -> list[Guarantee]:
        return [tables.derived(case, "MARINA-P", self.theory_step(case.setting), case.setting.d)]
