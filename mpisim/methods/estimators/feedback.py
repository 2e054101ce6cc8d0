"""Methods that compress gradients: DCGD, error feedback, EF21, CLAG and 1-bit Adam."""

from __future__ import annotations

import dataclasses
from math import inf, isinf, sqrt
from typing import Literal

import numpy as np

from mpisim.core.arrays import to_host
from mpisim.core.errors import InputError
from mpisim.core.lazy_rows import innovations
from mpisim.core.numerics.sums import squared_norms
from mpisim.core.schema import require
from mpisim.core.state import AtServer, PerWorker, Shared
from mpisim.methods.estimators.base import Direction, Estimator, estimator
from mpisim.methods.estimators.batches import Stochastic
from mpisim.methods.optimizers import AMSGrad, Optimizer, warmup_rounds
from mpisim.theory import derived, saq, stepsizes, tables
from mpisim.theory.cd_adam import Theorem64
from mpisim.theory.setting import Setting, Step
from mpisim.theory.tables import Case, Guarantee


@estimator("naive")
class Naive(Stochastic):
    """g^k = (1/n) sum_i C_i(grad f_i(x^k)) (Khirirat et al., 2018; SAQ calls it DCGD).

    direction : "both": the server also compresses the mean.
    """

    direction: Direction = "up"
    unbiased = in_ensembles = coinless = True

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


@estimator("ef")
class ErrorFeedback(Stochastic):
    """Error feedback (Seide et al., 2014): what C loses is sent later.

    c_i^k     = C(e_i^k + grad f_i(x^k))
    e_i^{k+1} = e_i^k + grad f_i(x^k) - c_i^k
    g^k       = (1/n) sum_i c_i^k

    direction : "both": the server does the same with the mean of the c_i^k.

    The step size is outside of C, as in the CD-Adam paper's comparison. For a constant step and a
    positively homogeneous C this is the classical form with gamma inside.
    """

    direction: Direction = "up"

    e_i = PerWorker("what C lost")
    e = AtServer("what the server's C lost")

    def start(self, x: np.ndarray) -> np.ndarray:
        self.e_i = self.star.zeros(self.star.m, len(x))
        self.e = self.star.zeros(len(x))
        return self.estimate(x)

    def estimate(self, x: np.ndarray) -> np.ndarray:
        v_i = self.e_i + self.gradients(x)
        c_i = self.compress(v_i)
        self.e_i = v_i - c_i.decoded()
        mean = self.star.mean(c_i)
        if self.direction == "up":
            c = self.star.broadcast(mean)
        else:
            v = self.e + mean
            c = self.star.broadcast(v, self.compressor)
            self.e = v - c
        self.star.estimated(mean, c)
        return c


@estimator("ef21")
class EF21(Stochastic):
    """EF21 (Richtarik et al., 2021; PermK paper, Appendix E): Markov compression of gradients.

    c_i^k     = C(grad f_i(x^{k+1}) - g_i^k)
    g_i^{k+1} = g_i^k + c_i^k
    g^{k+1}   = g^k + (1/n) sum_i c_i^k

    direction : "up", or "both": CD-Adam, Algorithm 1, lines 5-12. The server also compresses its g,
        c = C(g^{k+1} - gt^k), and the estimate is gt^{k+1} = gt^k + c.
    start : g_i^0 and, at the server, gt^0 are the gradients ("dense"); g_i^0 = C(grad f_i(x^0)) and
        gt^0 is their mean ("compressed"); or all states are 0 before the first exchange ("zero":
        CD-Adam, line 1; with direction "up" that is "compressed").
    """

    direction: Direction = "up"
    start_: Literal["dense", "compressed", "zero"] = "dense"
    permk_tables = in_ensembles = coinless = True

    g_i = PerWorker("Markov states")
    g = AtServer("their mean")
    gt = Shared("what all ranks know of g")

    def start(self, x: np.ndarray) -> np.ndarray:
        self.g_i = self.star.zeros(self.star.m, x.shape[-1])
        self.g = self.gt = self.star.zeros(*x.shape)
        if self.start_ == "zero":
            return self.estimate(x)
        gradients = self.lazy_gradients(x)
        c_i = self.star.dense(gradients) if self.start_ == "dense" else self.compress(gradients)
        self.g_i = c_i.decoded()
        self.g = self.star.mean(c_i)
        self.gt = self.star.broadcast(self.g)
        self.star.estimated(self.g, self.gt)
        return self.gt

    def estimate(self, x: np.ndarray) -> np.ndarray:
        c_i = self.compress(innovations(self.lazy_gradients(x), self.g_i))
        self.g_i = c_i.add_to(self.g_i)
        self.g = self.g + self.star.mean(c_i)
        if self.direction == "up":
            self.gt = self.star.broadcast(self.g)
        else:
            self.gt = self.gt + self.star.broadcast(self.g - self.gt, self.compressor)
        self.star.estimated(self.g, self.gt)
        return self.gt

    def full_step(self, setting: Setting) -> Step:
        return stepsizes.ef21(setting)

    def guarantees(self, case: Case) -> list[Guarantee]:
        """Theorem 6's row, after GD's: upwards, with full gradients, from g_i^0 = grad f_i(x^0)."""
        exact = self.batch is None and self.direction == "up" and self.start_ == "dense"
        if case.setting.alpha is None or not exact:
            return []
        return [tables.gradient_descent(case), tables.ef21(case)]

    def theorem_64(self, case: Case, optimizer: Optimizer, plain: bool) -> Theorem64 | None:
        """With AMSGrad and direction "both" this is CD-Adam's Algorithm 1 or a variant of it."""
        setting = case.setting
        if self.direction != "both" or not isinstance(optimizer, AMSGrad):
            return None
        if self.start_ != "zero" or optimizer.variant != "paper" or not plain:
            allowed = 'start = "zero", variant = "paper", one step size, no weight decay'
            raise InputError(f"it is about Algorithm 1: {allowed}")
        if setting.alpha is None:
            raise InputError(f"compressor {self.compressor.name!r} is not contractive")
        if isinf(case.delta):
            raise InputError("no lower bound of f is known")
        bounds = self.oracle.problem.double().gradient_bounds()
        if bounds is None:
            needs = "it needs bounded gradients (Assumption 6.2)"
            raise InputError(f"{needs}, and none are known of this problem")
        G, G_inf, variance = self.star.all_workers(bounds).max(axis=0).tolist()
        of_g = G, G_inf, sqrt(variance)
        N = int(case.rows.max())  # with which the variance of minibatches grows
        letters = setting.n, N, setting.d, setting.L_max, case.delta, 1 - setting.alpha
        return Theorem64(*letters, *of_g, optimizer.beta1, optimizer.nu, self.tau)


@estimator("ef21-sgdm")
class EF21SGDM(EF21):
    """EF21-SGDM (Fatkhullin, Tyurin, Richtarik, 2023, arXiv 2305.15155): EF21 of momenta.

    v_i^{k+1} = (1 - eta) v_i^k + eta grad f_i(x^{k+1}; xi_i^{k+1})
    c_i^k     = C(v_i^{k+1} - g_i^k)
    g_i^{k+1} = g_i^k + c_i^k
    g^{k+1}   = g^k + (1/n) sum_i c_i^k

    eta : in (0, 1]; 1 is EF21
    direction, start : as for EF21; v_i^0 is the first gradient
    """

    eta: float = dataclasses.field(kw_only=True)
    permk_tables = False

    v_i = PerWorker("momenta")

    def check(self) -> None:
        super().check()
        require(0 < self.eta <= 1, "method.eta", self.eta, "a number in (0, 1]")

    def start(self, x: np.ndarray) -> np.ndarray:
        self.v_i = None
        return super().start(x)

    def lazy_gradients(self, x: np.ndarray) -> np.ndarray:
        g_i = self.gradients(x)
        self.v_i = g_i if self.v_i is None else (1 - self.eta) * self.v_i + self.eta * g_i
        return self.v_i

    def full_step(self, setting: Setting) -> Step:
        if self.eta == 1:
            return super().full_step(setting)
        return derived.ef21_sgdm(setting, self.eta)

    def guarantees(self, case: Case) -> list[Guarantee]:
        if self.batch is not None or self.direction != "up" or self.start_ != "dense":
            return []
        step = self.full_step(case.setting)
        return [tables.derived(case, "EF21-SGDM", step, case.setting.zeta)]

    def theorem_64(self, case: Case, optimizer: Optimizer, plain: bool) -> Theorem64 | None:
        return None


@estimator("1bit-adam")
class OneBitAdam(Stochastic):
    """1-bit Adam's communication (Tang et al., 2021, Algorithm 1); its optimizer has the same name.

    For the first ``warmup`` rounds g is the mean gradient, sent dense both ways. Then workers and
    server send the momentum, with error feedback:

    m_i^k = beta1 m^{k-1} + (1 - beta1) grad f_i(x^k)
    c_i^k = C(m_i^k + e_i^k),  e_i^{k+1} = m_i^k + e_i^k - c_i^k
    m^k   = C((1/n) sum_i c_i^k + e^k),  e^{k+1} = (1/n) sum_i c_i^k + e^k - m^k

    warmup : rounds, or a share of ``run.rounds``; 0.13 is the CD-Adam paper's (13 of 100 epochs).
    variant : "paper", or "code": as in the published CD-Adam code, workers send gradients instead
        of m_i^k, and the optimizer takes their momentum. Round ``warmup`` is dense there, too.
        (The code's sign has the scale |x|_2 / sqrt(d); here C is any compressor.)
    """

    warmup: int | float = 0.13
    variant: Literal["paper", "code"] = "paper"
    beta1: float = 0.9

    e_i = PerWorker("what C lost")
    e = AtServer("what the server's C lost")
    m = Shared("momentum")

    def check(self) -> None:
        super().check()
        self.warmup = warmup_rounds(self.warmup, self.star.rounds)
        # There, a gradient is compressed by the number of the last step, one less than its own.
        self.dense = self.warmup + (self.variant == "code" and self.warmup > 0)

    def start(self, x: np.ndarray) -> np.ndarray:
        self.e_i = self.star.zeros(self.star.m, len(x))
        self.e, self.m = self.star.zeros(len(x)), self.star.zeros(len(x))
        return self.estimate(x)

    def estimate(self, x: np.ndarray) -> np.ndarray:
        gradients = self.gradients(x)
        if self.star.round < self.dense:
            mean = self.star.mean(self.star.dense(gradients))
            g = self.star.broadcast(mean)
            self.star.estimated(mean, g)
            self.m = self.beta1 * self.m + (1 - self.beta1) * g
            return g
        code = self.variant == "code"
        m_i = gradients if code else self.beta1 * self.m + (1 - self.beta1) * gradients
        v_i = m_i + self.e_i
        c_i = self.compress(v_i)
        self.e_i = v_i - c_i.decoded()
        v = self.star.mean(c_i) + self.e
        self.m = self.star.broadcast(v, self.compressor)
        self.e = v - self.m
        return self.m


@estimator("clag")
class CLAG(Estimator):
    """CLAG: EF21 whose workers skip messages (Richtarik et al., 2022, 3PC, arXiv 2202.00998).

    g_i^{t+1} = g_i^t + C(grad f_i(x^{t+1}) - g_i^t)
                if |grad f_i(x^{t+1}) - g_i^t|^2 > zeta |grad f_i(x^{t+1}) - grad f_i(x^t)|^2,
                else g_i^t
    g^{t+1}   = (1/n) sum_i g_i^{t+1}

    zeta : the trigger, a number >= 0; 0 is EF21, and with the identity as C this is LAG

    Every worker sends a bit, which says whether a message follows. g_i^0 = grad f_i(x^0).
    """

    zeta: float

    replayed = False  # who sends depends on values
    grad = PerWorker("grad f_i(x^t)")
    g_i = PerWorker("what the server knows of it")
    g = AtServer("their mean")

    def check(self) -> None:
        require(0 <= self.zeta < inf, "method.zeta", self.zeta, "a finite number >= 0")
        self.compressor.form(self.star.draw("length", np.zeros(1, np.int64)))  # one sends alone

    def start(self, x: np.ndarray) -> np.ndarray:
        self.grad = self.oracle.gradients(x)
        c_i = self.star.dense(self.grad)
        self.g_i, self.g = c_i.decoded(), self.star.mean(c_i)
        return self.star.broadcast(self.g)

    def estimate(self, x: np.ndarray) -> np.ndarray:
        star, old = self.star, self.grad
        self.grad = self.oracle.gradients(x)
        away = self.grad - self.g_i
        senders = star.flags(squares(away) > self.zeta * squares(self.grad - old))
        if senders.size:
            local = self.clients_of(senders).local
            c_i = star.compress(self.compressor, away[local], clients=senders)
            self.g_i[local] = self.g_i[local] + c_i.decoded()
            self.g = self.g + senders.size / star.n * star.mean(c_i)
        return star.broadcast(self.g)

    def theory_step(self, setting: Setting) -> Step:
        return stepsizes.clag(setting, self.zeta)


def squares(rows: np.ndarray) -> np.ndarray:
    """|row|^2 of each row (m, d), shape (m,), on the host."""
    return squared_norms(to_host(rows)).astype(np.float64)
