"""Theorems 1 and 2 of SAQ, the smoothness-aware quantization paper: rates for strongly convex f.

Theorem 1, DCGD+, with gamma = 1 / (L + 2 cal-L_max / n) and rho = gamma mu:

    E|x^k - x*|^2 <= (1 - rho)^k |x^0 - x*|^2 + 2 gamma sigma*_+ / (mu n),
    sigma*_+ = (1/n) sum_i cal-L_i |grad f_i(x*)|^2 in the norm of L_i^†.

Theorem 2, DIANA+, with gamma = 1 / (L + 6 cal-L_max / n) and rho = min(gamma mu, alpha / 2):

    E Phi^k <= (1 - rho)^k Phi^0,  Phi^k = |x^k - x*|^2 + 4 cal-L_max / (alpha n) gamma^2 sigma^k_+,
    sigma^k_+ = (1/n) sum_i |u_i^k - grad f_i(x*)|^2 in the norm of L_i^†.

Both are the theorem of Gorbunov et al. (2020) with the constants of Appendices C.1 and C.2, for
Theorem 2 with M = 4 cal-L_max / (alpha n). Without matrices, L_i is a number times the identity,
cal-L_i is omega L_i, and they are about DCGD and DIANA.

Theorems 3 to 6 fit the paper's two quantizers to Diag(L_i):

theorem  method  quantizer           a worker minimises            beta
3        DCGD+   block quantization  cal-L_i                       d / n + B, B = n blocks
4        DIANA+  block quantization  omega_i + cal-L_i / (n mu)    d / n + B
5        DCGD+   varying steps       cal-L_i                       d / n
6        DIANA+  varying steps       omega_i + cal-L_i / (n mu)    d / n

With L / mu added these numbers are the rounds of Theorems 1 and 2 in O(.). Appendices D.2, D.3, E.3
and E.4 bound them, first by T_{i,B}, T_{i,1} and the trace of L_i, then by nu, nu_1 and
kappa = L_max / mu. With nu and nu_1 of O(1) they are the theorems' `order`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cached_property
from math import inf, log, log1p, sqrt
from typing import Literal, NamedTuple

import numpy as np

from mpisim.core.errors import InputError
from mpisim.theory import quantization, stepsizes
from mpisim.theory.setting import Setting, Step
from mpisim.theory.tables import round_up


@dataclasses.dataclass(frozen=True)
class Rate:
    """A method at its theorem's step: the error shrinks by 1 - rho in a round.

    weight : of sigma*_+ in what is left of the error (Theorem 1), or of sigma^0_+ in Phi^0 (2).
    """

    theorem: Literal[1, 2]
    method: str
    omega_max: float
    cal_L_max: float
    step: Step
    rho: float
    weight: float

    @property
    def e_fold(self) -> float:
        """Rounds in which the error shrinks by e."""
        if self.rho <= 0:
            return inf
        return -1 / log1p(-self.rho) if self.rho < 1 else 0.0

    def rounds(self, epsilon: float) -> float:
        """The least K with (1 - rho)^K <= epsilon, at least 1."""
        return round_up(max(0.0, -log(epsilon)) * self.e_fold)


def theorem_1(setting: Setting, omega_max: float | None) -> Rate:
    """DCGD+, or DCGD; `InputError` if the theorem does not apply."""
    step, name = stepsizes.dcgd(setting), f"DCGD{_plus(setting)}"
    assert omega_max is not None  # as the compressor is unbiased
    weight = 2 * step.gamma / (setting.mu * setting.n)
    return Rate(1, name, omega_max, cal_L_max(setting), step, _rho(setting, step), weight)


def theorem_2(setting: Setting, omega_max: float | None, alpha: float | None = None) -> Rate:
    """DIANA+, or DIANA; alpha = 1 / (1 + omega_max) unless given; `InputError` as above."""
    step, name = stepsizes.diana_convex(setting), f"DIANA{_plus(setting)}"
    assert omega_max is not None
    largest = 1 / (1 + omega_max)
    alpha = largest if alpha is None else alpha
    if not 0 < alpha <= largest * (1 + 1e-12):
        raise InputError(f"method.alpha: Theorem 2 needs 0 < alpha <= 1 / (1 + omega) = {largest}")
    rho = min(_rho(setting, step), alpha / 2)
    weight = 4 * cal_L_max(setting) / (alpha * setting.n) * step.gamma**2
    return Rate(2, name, omega_max, cal_L_max(setting), step, rho, weight)


def cal_L_max(setting: Setting) -> float:
    """max_i cal-L(C_i, L_i), omega L_max without matrices."""
    if setting.cal_L_max is not None:
        return setting.cal_L_max
    assert setting.omega is not None
    return setting.omega * setting.L_max


def _plus(setting: Setting) -> str:
    return "" if setting.cal_L_max is None else "+"


def _rho(setting: Setting, step: Step) -> float:
    """gamma mu, at most 1, which rounding may exceed where L = mu."""
    return min(1.0, step.gamma * setting.mu)


THEOREMS = (3, 4, 5, 6)
BLOCKS = (3, 4)
DIANA = (4, 6)


def nu(L_i: np.ndarray) -> float:
    """sum_i L_i / max_i L_i, from 1 to n: Definition 8."""
    return float(L_i.sum() / L_i.max())


def nu_1(diagonal: np.ndarray) -> float:
    """sum_j L_i;jj / max_j L_i;jj of one worker, from 1 to d; Definition 8 takes the largest."""
    largest = float(diagonal.max())
    return float(diagonal.sum()) / largest if largest > 0 else 1.0


def T(diagonal: np.ndarray, starts: np.ndarray) -> float:
    """T_{i,B} = (1/d) sum_l sqrt(d_l) |Diag(L_i^ll)|: Appendix D.2.

    T_{i,1} is |Diag(L_i)| / sqrt(d). D.3's T_{i,B} with a tilde is 1 + T_{i,B} / (n mu).
    """
    norms = quantization.block_norms(diagonal, starts)
    return float((np.sqrt(np.diff(starts)) * norms).sum()) / diagonal.size


class Fit(NamedTuple):
    """A worker's omega_i and cal-L_i (bounds (10) and (14)), what its steps minimise, its bound.

    goal : cal-L_i / (n mu), for DIANA+ omega_i + cal-L_i / (n mu)
    bound : the appendix's, by T_{i,B}, T_{i,1} and the trace
    """

    omega: float
    cal_L: float
    goal: float
    bound: float


@dataclasses.dataclass(frozen=True)
class Quantizers:
    """The theorems for n workers, dimension d and strong convexity mu."""

    n: int
    d: int
    mu: float

    @cached_property
    def starts(self) -> np.ndarray:
        """Of B = n blocks, d if there are fewer coordinates; shape (B + 1,)."""
        return quantization.block_starts(self.d, min(self.n, self.d))

    def beta(self, theorem: int) -> float:
        """Sets the bits of a message."""
        blocks = self.starts.size - 1 if theorem in BLOCKS else 0
        return self.d / self.n + blocks

    def fit(self, theorem: int, diagonal: np.ndarray) -> Fit:
        """A worker with Diag(L_i) ``diagonal``, shape (d,), at the steps of its theorem."""
        n_mu = self.n * self.mu if theorem in DIANA else 0.0
        cal_L = self._steps(theorem, diagonal, n_mu)
        omega_i, cal_L_i = cal_L(quantization.sent_ones(diagonal, n_mu)), cal_L(diagonal)
        goal = cal_L_i / (self.n * self.mu) + (omega_i if theorem in DIANA else 0.0)
        one = np.array([0, self.d])
        numbers = T(diagonal, self.starts), T(diagonal, one), float(diagonal.sum())
        return Fit(omega_i, cal_L_i, goal, self._bound(theorem, *numbers))

    def bound(self, theorem: int, nu_1: float, L_max: float) -> float:
        """The bound of the goal by nu_1: T_{i,B} <= max_l sqrt(d_l) nu_1 L_max / d, and so on."""
        trace = nu_1 * L_max
        widest = sqrt(int(np.diff(self.starts).max()))
        return self._bound(theorem, widest * trace / self.d, trace / sqrt(self.d), trace)

    def order(self, theorem: int, L_max: float) -> float:
        """The theorem's O(.), with constant 1: rounds without log(1/epsilon).

        kappa / n, for DIANA+ plus n, and plus kappa / sqrt(n d) (4) or kappa / d (5, 6). Theorem 3
        takes n = O(sqrt(d)), so that kappa / sqrt(n d) is in kappa / n.
        """
        n, d, kappa = self.n, self.d, L_max / self.mu
        more = {3: 0.0, 4: n + kappa / sqrt(n * d), 5: kappa / d, 6: n + kappa / d}
        return kappa / n + more[theorem]

    def _steps(
        self, theorem: int, diagonal: np.ndarray, n_mu: float
    ) -> Callable[[np.ndarray], float]:
        """cal-L(C_i, L) as a function of Diag(L), for the steps fitted to ``diagonal``."""
        beta = self.beta(theorem)
        if theorem in BLOCKS:
            steps = quantization.block_steps(diagonal, self.starts, beta, n_mu)
            return lambda other: quantization.cal_L_blocks(other, self.starts, steps)
        h = quantization.varying_steps(diagonal, beta, n_mu)
        return lambda other: quantization.cal_L_varying(other, h)

    def _bound(self, theorem: int, T_B: float, T_1: float, trace: float) -> float:
        n_mu, beta = self.n * self.mu, self.beta(theorem)
        if theorem == 5:  # (26)
            return trace / (beta * n_mu)
        if theorem == 6:  # E.4, below (28)
            return sqrt(2) * (self.d + trace / n_mu) / beta
        ratio = self.d / (beta - (self.starts.size - 1))
        if theorem == 3:  # D.2
            return (ratio * T_B + sqrt(ratio) * T_1) / n_mu
        return 2 * (ratio * (1 + T_B / n_mu) + sqrt(ratio) * (1 + T_1 / n_mu))  # D.3
