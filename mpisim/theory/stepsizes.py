"""The theorems' largest step sizes, for gradient descent on the estimate."""

from __future__ import annotations

from math import sqrt

from mpisim.errors import InputError
from mpisim.theory.setting import Setting, Step


def _omega(setting: Setting, who: str) -> float:
    if setting.omega is None:
        raise InputError(
            f"method.stepsize: {who} has a theorem for unbiased compressors only; give a number"
        )
    return setting.omega


def gradient_descent(setting: Setting) -> Step:
    """gamma = 1 / L."""
    return Step(1 / setting.c.L, "gradient descent: 1 / L")


def dcgd(setting: Setting) -> Step:
    """gamma = 1 / (L + 2 omega L_max / n): SAQ, Theorem 1, where cal-L_i = omega L_i."""
    omega = _omega(setting, "DCGD")
    gamma = 1 / (setting.c.L + 2 * omega * setting.L_max / setting.n)
    return Step(gamma, "SAQ, Theorem 1 (DCGD): 1 / (L + 2 omega L_max / n)")


def diana_convex(setting: Setting) -> Step:
    """gamma = 1 / (L + 6 omega L_max / n): SAQ, Theorem 2, where cal-L_i = omega L_i."""
    omega = _omega(setting, "DIANA")
    gamma = 1 / (setting.c.L + 6 * omega * setting.L_max / setting.n)
    return Step(gamma, "SAQ, Theorem 2 (DIANA): 1 / (L + 6 omega L_max / n)")


def diana_nonconvex(setting: Setting) -> Step:
    """gamma = 1 / (10 L sqrt(1 + omega/n) (1 + omega + 1)), L = max L_i.

    VR-DIANA's non-convex step (Horvath et al., 2019) with m = 1, as the published MARINA
    experiments take it for DIANA.
    """
    omega = _omega(setting, "DIANA")
    gamma = 1 / (10 * setting.L_max * sqrt(1 + omega / setting.n) * (omega + 2))
    return Step(
        gamma, "VR-DIANA with m = 1, non-convex: 1 / (10 L_max sqrt(1 + omega/n) (omega + 2))"
    )


def marina(setting: Setting, p: float) -> Step:
    """gamma = 1 / (L (1 + sqrt((1-p) omega / (p n)))), L^2 = (1/n) sum L_i^2.

    MARINA, Theorem 2.1.
    """
    omega = _omega(setting, "MARINA")
    gamma = 1 / (setting.L_rms * (1 + sqrt((1 - p) * omega / (p * setting.n))))
    return Step(gamma, "MARINA, Theorem 2.1: 1 / (L (1 + sqrt((1-p) omega / (p n))))")


def vr_marina(setting: Setting, p: float, b: int) -> Step:
    """gamma = 1 / (L + sqrt((omega L^2 + (1+omega) cal-L^2 / b') (1-p) / (p n))).

    MARINA, Theorems 3.1 and 3.2; L^2 and cal-L^2 are the means of L_i^2 and cal-L_i^2.
    """
    omega = _omega(setting, "VR-MARINA")
    variance = omega * setting.L_rms**2 + (1 + omega) * setting.cal_L_rms**2 / b
    gamma = 1 / (setting.L_rms + sqrt(variance * (1 - p) / (p * setting.n)))
    formula = "1 / (L + sqrt((omega L^2 + (1+omega) cal-L^2 / b') (1-p) / (p n)))"
    return Step(gamma, f"MARINA, Theorem 3.1 (3.2 online): {formula}")


def pp_marina(setting: Setting, p: float, r: int) -> Step:
    """gamma = 1 / (L (1 + sqrt((1-p) (1+omega) / (p r)))): MARINA, Theorem 4.1."""
    omega = _omega(setting, "PP-MARINA")
    gamma = 1 / (setting.L_rms * (1 + sqrt((1 - p) * (1 + omega) / (p * r))))
    return Step(gamma, "MARINA, Theorem 4.1: 1 / (L (1 + sqrt((1-p) (1+omega) / (p r))))")


def vr_diana(setting: Setting, m: float) -> Step:
    """gamma = 1 / (10 L sqrt(1 + omega/n) (m^(2/3) + omega + 1)), L = max L_i.

    VR-DIANA, non-convex (Horvath et al., 2019), as the published MARINA experiments take it:
    ``m`` counts minibatches, m / b'.
    """
    omega = _omega(setting, "VR-DIANA")
    spread = sqrt(1 + omega / setting.n)
    gamma = 1 / (10 * setting.L_max * spread * (m ** (2 / 3) + omega + 1))
    formula = "1 / (10 L_max sqrt(1 + omega/n) ((m/b')^(2/3) + omega + 1))"
    return Step(gamma, f"VR-DIANA, non-convex: {formula}")


def ef21(setting: Setting) -> Step:
    """gamma = 1 / (L_- + L_+ sqrt(beta/theta)): PermK paper, Theorem 6.

    Lemma 8: sqrt(beta/theta) = sqrt(1-alpha) / (1 - sqrt(1-alpha)); the first form in (19) has a
    misprint, the second agrees.
    """
    if setting.alpha is None:
        raise InputError(
            "method.stepsize: EF21 has a theorem for contractive compressors only; give a number"
        )
    root = sqrt(1 - setting.alpha)
    gamma = 1 / (setting.c.L + setting.c.L_plus * root / (1 - root))
    return Step(gamma, "PermK paper, Theorem 6 (EF21): 1 / (L_- + L_+ sqrt(beta/theta))")
