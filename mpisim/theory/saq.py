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

Theorems 3 to 6: `mpisim.theory.saq_quantizers`.
"""

from __future__ import annotations

import dataclasses
from math import ceil, inf, log, log1p
from typing import Literal

from mpisim.core.errors import InputError
from mpisim.theory import stepsizes
from mpisim.theory.setting import Setting, Step


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
        rounds = max(0.0, -log(epsilon)) * self.e_fold
        return max(1.0, float(ceil(rounds))) if rounds < inf else inf


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
