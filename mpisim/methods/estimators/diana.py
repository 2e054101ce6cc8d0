"""DIANA: workers compress the difference of their gradient and a shift that they learn.

VR-DIANA adds loopless variance reduction at the workers. Rand-DIANA and EF-BV move the shifts in
other ways.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from math import inf
from typing import Literal

import numpy as np

from mpisim.core.schema import require
from mpisim.core.state import AtServer, PerWorker, Shared
from mpisim.methods.estimators.base import Estimator, Theory, estimator, probability, unbiased
from mpisim.methods.estimators.batches import Participation
from mpisim.theory import derived, saq, stepsizes
from mpisim.theory.setting import Setting, Step


class Shifted(Estimator):
    """Shifts h_i, which start at 0."""

    h_i = PerWorker("shifts")
    h = AtServer("their mean")

    def start(self, x: np.ndarray) -> np.ndarray:
        self.start_shifts(x)
        return self.estimate(x)

    def start_shifts(self, x: np.ndarray) -> None:
        """h_i^0 = 0, and their mean h^0."""
        self.h_i = self.star.zeros(self.star.m, x.shape[-1])
        self.h = self.star.zeros(*x.shape)


class DianaFamily(Shifted, Participation):
    """What DIANA and VR-DIANA share: how shifts move, and what is sent."""

    alpha: float | Theory
    unbiased = True

    def check(self) -> None:
        if self.alpha == "theory":
            omega = unbiased(self.compressor, self.compressor.shift_omega, "alpha")
            self.alpha = 1 / (1 + omega)
        allowed = 'a finite number >= 0 or "theory"'
        require(0 <= float(self.alpha) < inf, "method.alpha", self.alpha, allowed)
        super().check()

    def theory_step(self, setting: Setting) -> Step:
        omega = self.compressor.shift_omega
        if omega is not None and not 0 < float(self.alpha) <= (1 + 1e-12) / (1 + omega):
            cases = "method.alpha above 0 and at most 1 / (1 + omega)"
            raise stepsizes.theorem_only_for(self.name, cases)
        return self.step_of(setting)

    @abstractmethod
    def step_of(self, setting: Setting) -> Step:
        """The theorem's, for 0 < alpha <= 1 / (1 + omega), with which the shifts' error shrinks."""

    def send(self, g_i: np.ndarray) -> np.ndarray:
        """`collect`, and g^k to all workers."""
        return self.star.broadcast(self.collect(g_i))

    def collect(self, g_i: np.ndarray) -> np.ndarray:
        """The three lines of `Diana`, for gradients or their estimates g_i (m, d): g^k (d,)."""
        m_i = self.compress(g_i - self.h_i)
        self.h_i = self.h_i + self.alpha * m_i.decoded()
        m = self.star.mean(m_i)
        g = self.h + m
        self.h = self.h + self.alpha * m
        return g


@estimator("diana")
class Diana(DianaFamily):
    """DIANA (Mishchenko et al., 2019; Horvath et al., 2019).

    m_i^k     = Q(grad f_i(x^k) - h_i^k)
    g^k       = h^k + (1/n) sum_i m_i^k
    h_i^{k+1} = h_i^k + alpha m_i^k

    alpha : shift step size; "theory" is 1 / (1 + omega), with the compressor ``smooth`` (DIANA+)
        1 / (1 + omega_max) of the compressor inside. Shifts start at 0.
    rule : of a "theory" step: "theorem", Theorem 2 of the smoothness-aware quantization paper where
        the problem is convex, or "published", the step of that paper's published code

    On a simulated fleet the mean is of those in S, whose messages arrive, and the others keep h_i.

    This differs from the published MARINA experiments: there, workers send h_i^{k+1} and the server
    steps with its mean, instead of h^k plus the mean of the compressed differences.
    """

    alpha: float | Theory = "theory"
    rule: Literal["theorem", "published"] = "theorem"
    partial = in_ensembles = coinless = True

    def estimate(self, x: np.ndarray) -> np.ndarray:
        star = self.star
        S = self.clients_of(self.arrived(None, 1))
        if S.S is None:
            return self.send(self.oracle.gradients(x))
        h_i = self.h_i[S.local]
        m_i = star.compress(self.compressor, self.oracle.gradients(x, S.local) - h_i, clients=S.S)
        self.h_i[S.local] = h_i + self.alpha * m_i.decoded()
        m = star.mean(m_i)
        g = self.h + m
        self.h = self.h + float(self.alpha) * len(S.S) / star.n * m
        return star.broadcast(g)

    def step_of(self, setting: Setting) -> Step:
        if self.rule == "published":
            return stepsizes.diana_published(setting)
        if setting.convex:
            return stepsizes.diana_convex(setting)
        if setting.cal_L_max is not None:
            raise stepsizes.theorem_only_for("DIANA+", "convex problems")
        return stepsizes.diana_nonconvex(setting)

    def rate(self, setting: Setting) -> saq.Rate:
        self.theory_step(setting)  # its error is the reason
        return saq.theorem_2(setting, self.compressor.shift_omega, float(self.alpha))


@estimator("rand-diana")
class RandDiana(Shifted):
    """Rand-DIANA (Shulgin and Richtarik, 2022): shifts are old gradients.

    m_i^k     = Q(grad f_i(x^k) - h_i^k)
    g^k       = h^k + (1/n) sum_i m_i^k
    h_i^{k+1} = grad f_i(x^k) with probability p, sent uncompressed, else h_i^k

    p : "theory" is 1 / (1 + omega). All workers share the coin.

    Shifts start at 0.
    """

    p: float | Theory = "theory"
    unbiased = True

    def check(self) -> None:
        if self.p == "theory":
            self.p = 1 / (1 + unbiased(self.compressor, self.compressor.shift_omega, "p"))
        self.p = probability(self.p, 1.0)

    def estimate(self, x: np.ndarray) -> np.ndarray:
        g_i = self.oracle.gradients(x)
        g = self.h + self.star.mean(self.compress(g_i - self.h_i))
        if self.star.coin(float(self.p)):
            sent = self.star.dense(g_i)
            self.h_i, self.h = sent.decoded(), self.star.mean(sent)
        return self.star.broadcast(g)

    def theory_step(self, setting: Setting) -> Step:
        return derived.rand_diana(setting, float(self.p))


@estimator("ef-bv")
class EFBV(Shifted):
    """EF-BV (Condat, Yi, Richtarik, 2022, arXiv 2205.04180): EF21 and DIANA are its ends.

    d_i^k     = C(grad f_i(x^k) - h_i^k)
    g^k       = h^k + nu (1/n) sum_i d_i^k
    h_i^{k+1} = h_i^k + lambda d_i^k

    lambda : "theory" is 1 / (1 + omega) of an unbiased C, and 1 of a biased one, as in EF21
    nu : "theory" is 1 / (1 + A) of unbiased C, A of the AB inequality: omega / n where they are
        independent of each other; and 1 of biased ones. With nu = 1 and an unbiased C this is
        DIANA.

    Shifts start at 0.
    """

    lambda_: float | Theory = "theory"
    nu: float | Theory = "theory"

    def check(self) -> None:
        C, omega = self.compressor, self.compressor.omega or 0.0
        self.lambda_ = probability(self.lambda_, 1 / (1 + omega), "lambda")
        self.nu = probability(self.nu, 1 / (1 + (omega if C.A is None else C.A)), "nu")

    def estimate(self, x: np.ndarray) -> np.ndarray:
        d_i = self.compress(self.oracle.gradients(x) - self.h_i)
        self.h_i = self.h_i + self.lambda_ * d_i.decoded()
        d = self.star.mean(d_i)
        g = self.h + self.nu * d
        self.h = self.h + self.lambda_ * d
        return self.star.broadcast(g)

    def theory_step(self, setting: Setting) -> Step:
        return derived.ef_bv(setting, float(self.lambda_), float(self.nu))


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
        self.b = self.batch_size("batch")
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

    def step_of(self, setting: Setting) -> Step:
        if self.p != self.b / self.oracle.samples:
            raise stepsizes.theorem_only_for(self.name, 'method.p = "theory"')
        if setting.cal_L_max is not None:  # alpha is not for omega of the Euclidean norm
            raise stepsizes.theorem_only_for(self.name, "compressors other than 'smooth'")
        return stepsizes.vr_diana(setting, self.oracle.samples / self.b)
