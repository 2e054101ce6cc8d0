"""CANITA's step, derived here: of the paper only the abstract was at hand.

Let F = f(w) - f*, X = |x - x*|^2, G = |grad f(y)|^2, D and H the means over the workers of
|grad f_i(y) - grad f_i(w)|^2 and |grad f_i(w) - h_i|^2, and V the variance of g, which is at most
(2 omega / n) (D + H). A + marks the next round. With convex L-smooth f_i, theta <= 1/2,
eta <= 1 / (2 L) and alpha <= 1 / (1 + omega), in the mean

    f(z+) - f* + theta^2 / (2 eta) X+ <= (1 - theta) F + theta^2 / (2 eta) X + 3 eta V / 4
                                         - eta G / 4 - D / (4 L)
    H+ <= (1 - alpha / 2) H + K (D + L^2 eta^2 (G + V)),  K = 2 p (1 + 2 p / alpha)
    F+ = p (f(z+) - f*) + (1 - p) F

The second line times M = 8 omega eta / (n alpha) adds at most eta / 8 to the factors of G and V. So
nothing is left of G, V and D if M K + 2 omega eta / n <= 1 / (4 L), and (1 - alpha / 4) M of H.
Where theta_k = 2 / (p (k + a)) with a >= 4 / p and a >= 8 / alpha, then

    Phi_k = eta / theta_{k-1}^2 (F_k / p + M H_k) + X_k / 2

does not grow: (1 - p theta_k) / theta_k^2 and (1 - alpha / 4) / theta_k^2 are 1 / theta_{k-1}^2 at
most. So F_k = O(1 / (p eta k^2)). With p = 1 / (1 + b) that is the abstract's order, in which L
stands with 1 + sqrt(omega^3 / n).
"""

from __future__ import annotations

from math import sqrt

from mpisim.core.errors import InputError
from mpisim.theory.setting import Setting, Step
from mpisim.theory.stepsizes import omega_of, theorem_only_for


def probability(omega: float, n: int) -> float:
    """p = 1 / (1 + b), b = min(omega, sqrt(omega (1 + omega)^2 / n))."""
    return 1 / (1 + min(omega, (1 + omega) * sqrt(omega / n)))


def offset(p: float, alpha: float) -> float:
    """a of theta_k."""
    return max(4 / p, 8 / alpha)


def step(setting: Setting, p: float, alpha: float) -> Step:
    """eta = 1 / (L_max max(2, (omega / n) (8 + 64 p / alpha + 128 (p / alpha)^2)))."""
    if setting.condition == "PL":
        raise InputError('method.stepsize: condition = "PL" is not allowed with CANITA')
    if not setting.convex:
        raise theorem_only_for("CANITA", "convex problems")
    ratio = p / alpha
    worst = omega_of(setting, "CANITA") / setting.n * (8 + 64 * ratio + 128 * ratio * ratio)
    formula = "1 / (L_max max(2, (omega/n) (8 + 64 p/alpha + 128 (p/alpha)^2)))"
    return Step(1 / (setting.L_max * max(2.0, worst)), f"derived for CANITA: {formula}")
