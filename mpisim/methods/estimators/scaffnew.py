"""Scaffnew, TAMUNA and LoCoDL: local steps until a coin says so, with control variates."""

from __future__ import annotations

import dataclasses
from math import inf
from typing import cast

import numpy as np

from mpisim.compressors.permutation import Pattern
from mpisim.core.errors import InputError
from mpisim.core.schema import require
from mpisim.core.state import PerWorker, Shared
from mpisim.methods.estimators.base import Estimator, Theory, estimator, probability, unbiased
from mpisim.methods.estimators.batches import Stochastic
from mpisim.theory import stepsizes
from mpisim.theory.setting import Setting, Step


@estimator("scaffnew")
class Scaffnew(Stochastic):
    """Scaffnew, which is ProxSkip for averages (Mishchenko et al., 2022, arXiv 2202.09357).

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
    estimates_gradient = False
    h_i = PerWorker("control variates")

    def check(self) -> None:
        super().check()
        self.p = probability(self.p, self.p)

    def start(self, x: np.ndarray) -> np.ndarray:
        self.h_i = self.star.zeros(self.star.m, len(x))
        return self.estimate(x)

    def estimate(self, x: np.ndarray) -> np.ndarray:
        dx_i = self.compress(self.local_points(x) - x)
        dx = self.star.average(dx_i)
        self.h_i = self.h_i + (self.p / self.star.stepsize) * (dx - dx_i.decoded())
        return -dx

    def local_points(self, x: np.ndarray) -> np.ndarray:
        """x_i^ of the step whose coin shows 1, shape (m, d)."""
        x_i = self.star.zeros(self.star.m, len(x)) + x
        for _ in range(self.star.flips(self.p)):
            x_i -= self.star.stepsize * (self.gradients(x_i) - self.h_i)
        return x_i

    def full_step(self, setting: Setting) -> Step:
        return stepsizes.scaffnew(setting)


@estimator("compressed-scaffnew")
class CompressedScaffnew(Scaffnew):
    """CompressedScaffnew (Condat, Agarsky, Richtarik, 2022, arXiv 2210.13277).

    Scaffnew where workers send some coordinates, which both sides know. With Q_i the compressor,
    whose mean over workers keeps a vector that is the same for all, in a round with the coin

    x   = x + dx,  dx = (1/n) sum_j Q_j(x_j^ - x)
    h_i = h_i + (p eta / (gamma (1 + omega))) (Q_i(dx) - Q_i(x_i^ - x))

    eta : "theory" is 1 - A, of the AB inequality: n (s - 1) / (s (n - 1)) where s of the n workers
        send each coordinate, drawn uniformly

    The other keys are Scaffnew's. ``permk`` with s groups deals each coordinate to one worker of
    each group; ``block-permutation`` deals whole blocks.
    """

    eta: float | Theory = "theory"

    def check(self) -> None:
        super().check()
        C = self.compressor
        if (
            not (C.correlated and C.seeded)
            or C.A is None
            or C.omega is None
            or abs(C.A - (C.B or 0)) > 1e-12
        ):
            raise InputError(
                f"compressor.name: {C.name!r} is not allowed with 'compressed-scaffnew'; it must"
                " deal known coordinates to workers, as permk with groups does"
            )
        require(C.A < 1, "compressor.name", C.name, "one that sends each coordinate twice or more")
        self.eta = probability(self.eta, 1 - C.A, "eta")

    def estimate(self, x: np.ndarray) -> np.ndarray:
        gamma, C = self.star.stepsize, self.compressor
        x_i = self.local_points(x)
        dx_i = self.compress(x_i - x)
        dx = self.star.average(dx_i)
        same = C.compress(0 * x_i + dx, dx_i.draw).decoded()  # known at the worker
        factor = self.p * float(self.eta) / (gamma * (1 + float(C.omega or 0)))
        self.h_i = self.h_i + factor * (same - dx_i.decoded())
        return -dx

    def theory_step(self, setting: Setting) -> Step:
        if float(self.eta) > (1 + 1e-12) * (1 - float(self.compressor.A or 0)):
            raise stepsizes.theorem_only_for(self.name, "method.eta up to 1 - A")
        return super().theory_step(setting)

    def full_step(self, setting: Setting) -> Step:
        return stepsizes.compressed_scaffnew(setting, "CompressedScaffnew")


@estimator("tamuna")
class Tamuna(CompressedScaffnew):
    """TAMUNA (Condat, Agarsky, Malinovsky, Richtarik, 2023, arXiv 2302.09832).

    S       = c clients, drawn at random, which get x^k
    x_i     = x^k, then until a shared coin shows 1  x_i = x_i - gamma (g_i(x_i) - h_i)
    x^{k+1} = x^k + (1/c) sum over S of C_i(x_i - x^k)
    h_i     = h_i + (p eta / gamma) (s/c) (C_i(x^{k+1} - x^k) - C_i(x_i - x^k))  for i in S

    participants : c, drawn without replacement; all workers unless given
    eta : "theory" is n (s - 1) / (s (n - 1))

    The compressor is ``pattern``: s of the c clients send each coordinate. The server answers with
    the same coordinates of x^{k+1} - x^k. The other keys are Scaffnew's.
    """

    participants: int | None = None

    server_point = True

    def check(self) -> None:
        n, C = self.star.n, self.compressor
        allowed = "pattern, which deals coordinates to those who send"
        require(isinstance(C, Pattern), "compressor.name", C.name, allowed)
        super().check()
        self.s = s = cast(Pattern, C).s
        self.c = n if self.participants is None else self.participants
        allowed = f"an integer from s = {s} to n = {n}"
        require(s <= self.c <= n, "method.participants", self.c, allowed)

    def estimate(self, x: np.ndarray) -> np.ndarray:
        gamma, C = self.star.stepsize, self.compressor
        clients = self.drawn_clients(self.participants)
        x = self.star.broadcast(x, clients=clients.S)
        local = np.arange(self.star.m) if clients.local is None else clients.local
        h_i = self.h_i[local]
        x_i = self.star.zeros(len(local), len(x)) + x
        for _ in range(self.star.flips(self.p)):
            x_i -= gamma * (self.gradients_at(x_i, clients, self.tau) - h_i)
        dx_i = self.star.compress(C, x_i - x, clients=clients.S)
        dx = self.star.mean(dx_i)
        factor = self.p * float(self.eta) / gamma * self.s / self.c
        self.h_i[local] = h_i + factor * (self.star.send(dx, C, dx_i.draw) - dx_i.decoded())
        return -dx

    def full_step(self, setting: Setting) -> Step:
        return stepsizes.compressed_scaffnew(setting, "TAMUNA")


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
        chi, rho = float(self.chi), float(self.rho)
        if chi > (1 + 1e-12) * (2 * rho - rho * rho * (1 + self.omega / self.star.n)):
            cases = "method.chi up to 2 rho - rho^2 (1 + omega / n)"
            raise stepsizes.theorem_only_for(self.name, cases)
        step, problem = stepsizes.locodl(setting, self.mu), self.oracle.problem
        closed = problem.closed_form
        mu_i = closed.mu_i if closed else problem.hessian(problem.initial_point()).shared
        if self.mu > (1 + 1e-12) * mu_i:  # the mean of the f_i may be more convex
            raise stepsizes.theorem_only_for("LoCoDL", "method.mu up to that of each f_i")
        return step
