"""Steps of methods for which no theorem is quoted, derived here from Lyapunov functions.

gamma is the step of x+ = x - gamma g, D = x+ - x, and f has a bound from below. As in the PermK
paper, for smooth f,

    f(x+) <= f(x) - gamma/2 |grad f(x)|^2 - (1/(2 gamma) - L/2) |D|^2 + gamma/2 |g - grad f(x)|^2.

Each derivation bounds the last term by an error that contracts, and adds a multiple of it to f, so
that nothing is left of |D|^2. Tests check each in runs. E is omitted.
"""

from __future__ import annotations

import dataclasses
from math import sqrt

from mpisim.theory import stepsizes
from mpisim.theory.setting import Setting, Step
from mpisim.theory.stepsizes import by_condition, for_convex, omega_of, theorem_only_for, without_pl


def fedavg(setting: Setting, K: int, eta_g: float, mu: float = 0.0) -> Step:
    """eta_l = 1 / max(K (L_max + mu), K eta_g L); 1 / (eta_g L) for K = 1. FedProx has mu > 0.

    gamma = K eta_g eta_l is the step along the mean of the gradients at the y_i. With
    u = eta_l (L_max + mu) <= 1/K a client is at most ((1 + u)^t - 1) / u eta_l |grad f_i(x)| away
    after t steps, so that in the mean over the steps

        |y_i - x|^2 <= eta_l^2 K (K - 1) |grad f_i(x)|^2.

    f falls by gamma/2 |grad f(x)|^2 in a round, less gamma/2 eta_l^2 K (K - 1) times the mean of
    (L_max + mu)^2 |grad f_i(x)|^2: the floor that FedAvg has where clients differ.
    """
    who, bounds, formula = "FedProx" if mu else "FedAvg", [eta_g * K * setting.c.L], "eta_g L"
    without_pl(setting, who)
    _require_plain(setting, who)
    if K > 1:
        bounds.append(K * (setting.L_max + mu))
        formula = "K max(L_max + mu, eta_g L)" if mu else "K max(L_max, eta_g L)"
    return Step(1 / max(bounds), f"derived for {who}: 1 / ({formula})")


def scaffold(setting: Setting, K: int, eta_g: float) -> Step:
    """eta_l = 1 / (K max(2 L_max, eta_g (L_- + L_+))), with both options.

    As for `fedavg`, with d_i = grad f_i(x) - c_i + c for grad f_i(x). The mean of |d_i|^2 is at
    most |grad f(x)|^2 + S, S the mean of |grad f_i(x) - c_i|^2. With e^2 = eta_l^2 K (K-1) L_max^2,
    at most 1/4, |g - grad f|^2 <= e^2 (|grad f|^2 + S), and
    S+ <= 2 L_+^2 |D|^2 + 2 e^2 (|grad f|^2 + S). So f + gamma/4 S falls by gamma/4 |grad f(x)|^2.
    """
    without_pl(setting, "SCAFFOLD")
    _require_plain(setting, "SCAFFOLD")
    gamma = 1 / (K * max(2 * setting.L_max, eta_g * (setting.c.L + setting.c.L_plus)))
    return Step(gamma, "derived for SCAFFOLD: 1 / (K max(2 L_max, eta_g (L_- + L_+)))")


def marina_p(setting: Setting, omega: float, p: float) -> Step:
    """gamma = 1 / (L_- + L sqrt((1-p) omega / p)), L^2 = mean L_i^2, omega of ``down``.

    W = (1/n) sum_i L_i^2 |w_i - x|^2 bounds the error, W+ <= (1-p) (W + omega L^2 |D|^2), and
    f + gamma/(2p) W falls by gamma/2 |grad f|^2. Workers' draws may depend on each other. Under PL
    as for MARINA, with gamma/p W.
    """
    _require_plain(setting, "MARINA-P")
    L = setting.L_rms
    gamma = 1 / (setting.c.L + L * sqrt(setting.factor * (1 - p) * omega / p))
    return by_condition(setting, "marina_p", gamma, p)


def ef21_p(setting: Setting, alpha: float) -> Step:
    """Without compression up gamma = 1 / (L + L sqrt(beta/theta)), with alpha of ``down``.

    W = |w - x|^2 behaves as EF21's error (`stepsizes.ef21`): W+ <= (1 - theta) W + beta |D|^2, and
    |grad f(w) - grad f(x)|^2 <= L^2 W. With Q up, convex f_i and the shifts' alpha <= 1 / (1+omega)

        gamma = min(theta / (8 L), n / (48 omega L_max)).

    Let F = f(w) - f*, X = |x - x*|^2 and H the mean of |h_i - grad f_i(x*)|^2. Then
    X+ <= X - 3/2 gamma F + 4 gamma L W + gamma^2 (2 L F + V),
    W+ <= (1 - theta) W + 2 beta gamma^2 L F + gamma^2 V,  V <= (2 omega / n) (H + 2 L_max F) and
    H+ <= (1 - alpha) H + 2 alpha L_max F. So X + a W + b H with a = 8 gamma L / theta <= 1 and
    b = 4 (1 + a) gamma^2 omega / (n alpha) falls by gamma/2 F and by the shares theta/2 and alpha/2
    of the latter two; with mu > 0 by min(gamma mu / 8, theta / 4, alpha / 2) of itself.
    """
    L, root = setting.c.L, sqrt(1 - alpha)
    theta = 1 - root
    if setting.omega == 0:
        gamma = 1 / (L * (1 + sqrt(setting.factor) * root / theta))
        return by_condition(setting, "ef21_p", gamma, theta)
    for_convex(setting, "EF21-P + DIANA")
    noise = 48 * omega_of(setting, "EF21-P + DIANA") * setting.L_max / setting.n
    formula = "1 / max(8 L / theta, 48 omega L_max / n)"
    return Step(1 / max(8 * L / theta, noise), f"derived for EF21-P + DIANA: {formula}")


def ef21_sgdm(setting: Setting, eta: float) -> Step:
    """gamma = 1 / (L_- + L_+ sqrt(2 S)), S = 2 beta/theta (eta^2 + (1-eta)^2) + ((1-eta)/eta)^2.

    With G the mean of |g_i - v_i|^2 and P that of |v_i - grad f_i|^2, |g - grad f|^2 <= 2 G + 2 P,
    G+ <= (1 - theta) G + 2 beta eta^2 (L_+^2 |D|^2 + P) and
    P+ <= (1 - eta) P + (1-eta)^2 / eta L_+^2 |D|^2, where v_i+ - v_i = eta (grad f_i(x+) - v_i). So
    f + gamma/theta G + (gamma/eta + 2 gamma beta eta/theta) P falls by gamma/2 |grad f|^2.
    """
    without_pl(setting, "EF21-SGDM")
    root, rest = sqrt(1 - stepsizes.alpha_of(setting, "EF21-SGDM")), 1 - eta
    ratio = root / (1 - root)  # sqrt(beta/theta)
    S = 2 * ratio * ratio * (eta * eta + rest * rest) + (rest / eta) * (rest / eta)
    gamma = 1 / (setting.c.L + setting.c.L_plus * sqrt(2 * S))
    formula = "1 / (L_- + L_+ sqrt(4 beta/theta (eta^2 + (1-eta)^2) + 2 ((1-eta)/eta)^2))"
    return Step(gamma, f"derived for EF21-SGDM: {formula}")


def ef_bv(setting: Setting, lambda_: float, nu: float) -> Step:
    """gamma = 1 / (L_- + L_+ sqrt(r_av) / theta), theta = 1 - sqrt(r).

    r = (1 - lambda)^2 + lambda^2 omega and r_av = (1 - nu)^2 + nu^2 A of unbiased C, with A of the
    AB inequality; both are 1 - alpha of biased C with lambda = nu = 1, which is EF21. With G the
    mean of |h_i - grad f_i|^2, |g - grad f|^2 <= r_av G and
    G+ <= sqrt(r) G + L_+^2 |D|^2 / theta, so that f + gamma r_av / (2 theta) G falls by
    gamma/2 |grad f|^2.
    """
    if setting.omega is not None:
        average = setting.omega if setting.A is None else setting.A
        r = (1 - lambda_) * (1 - lambda_) + lambda_ * lambda_ * setting.omega
        r_av = (1 - nu) * (1 - nu) + nu * nu * average
    elif setting.alpha is not None and lambda_ == nu == 1:
        r = r_av = 1 - setting.alpha
    else:
        cases = "unbiased compressors, and contractive ones with lambda = nu = 1"
        raise theorem_only_for("EF-BV", cases)
    if r >= 1:
        raise theorem_only_for("EF-BV", "lambda below 2 / (1 + omega)")
    theta = 1 - sqrt(r)
    gamma = 1 / (setting.c.L + setting.c.L_plus * sqrt(setting.factor * r_av) / theta)
    return by_condition(setting, "ef_bv", gamma, theta)


def rand_diana(setting: Setting, p: float) -> Step:
    """DIANA's for convex f_i; else 1 / (L_- + L_+ sqrt(A kappa / theta)), theta = 1 - sqrt(1-p).

    The proof of SAQ's Theorem 2 uses of the shifts only that |h_i+ - grad f_i(x*)|^2 is at most
    (1 - alpha) |h_i - grad f_i(x*)|^2 + alpha |grad f_i(x) - grad f_i(x*)|^2, which holds with
    alpha = p. For other f, G is the mean of |h_i - grad f_i|^2, |g - grad f|^2 <= A G and
    G+ <= sqrt(1-p) G + kappa L_+^2 |D|^2 with kappa = p + (1-p) / theta, and
    f + gamma A / (2 theta) G falls by gamma/2 |grad f|^2.
    """
    if setting.convex and setting.condition != "PL":
        step = stepsizes.diana_convex(setting)
        return dataclasses.replace(step, source=f"derived for Rand-DIANA as in {step.source}")
    if setting.A is None:
        raise theorem_only_for("Rand-DIANA", "unbiased compressors")
    theta = 1 - sqrt(1 - p)
    spread = setting.A * (p + (1 - p) / theta) / theta
    gamma = 1 / (setting.c.L + setting.c.L_plus * sqrt(setting.factor * spread))
    return by_condition(setting, "rand_diana", gamma, theta)


def adiana(setting: Setting, mu: float, p: float, alpha: float) -> Step:
    """eta = 1 / max(2 L, (omega L_max / n) (8 + 128 q)), q = (p / alpha) (1 + 2 p / alpha).

    For convex f_i and mu-strongly convex f. With Z = |z - x*|^2, Y = f(y) - f*, F = f(w) - f*, H
    the mean of |h_i - grad f_i(w)|^2, the gaps B = f(w) - f(x) - <grad f(x), w - x> and B_y of y,
    V = |g - grad f(x)|^2 <= (2 omega / n) (2 L_max B + H), and theta for theta_1:

        Z+ + 2 c Y+ <= beta Z + c F + c (1 - 2 theta) Y - c B - c (1 - 2 theta) B_y
                       + (gamma eta / theta) V,   c = gamma beta / theta, beta >= 1/2
        F+ <= (1 - p) F + p Y
        H+ <= (1 - alpha/2) H + 4 p L_max (1 + 2 p / alpha) (B + B_y)

    So Z + 2 c Y + c (1 + theta) / p F + 8 gamma eta omega / (theta n alpha) H falls by the share
    min(gamma mu, theta / 2, p theta / (1 + theta), alpha / 4) of itself, as theta <= 1/4.
    """
    without_pl(setting, "ADIANA")
    if not setting.convex or setting.c.mu is None or mu > setting.c.mu:
        raise theorem_only_for("ADIANA", "convex problems and method.mu up to their mu")
    ratio = p / alpha
    noise = omega_of(setting, "ADIANA") * setting.L_max / setting.n
    worst = noise * (8 + 128 * ratio * (1 + 2 * ratio))
    formula = "1 / max(2 L, (omega L_max / n) (8 + 128 p/alpha (1 + 2 p/alpha)))"
    return Step(1 / max(2 * setting.c.L, worst), f"derived for ADIANA: {formula}")


def _require_plain(setting: Setting, who: str) -> None:
    if setting.omega != 0:
        raise theorem_only_for(who, "uncompressed messages up")


def canita_probability(omega: float, n: int) -> float:
    """CANITA's p = 1 / (1 + b), b = min(omega, sqrt(omega (1 + omega)^2 / n))."""
    return 1 / (1 + min(omega, (1 + omega) * sqrt(omega / n)))


def canita(setting: Setting, p: float, alpha: float) -> Step:
    """eta = 1 / (L_max max(2, (omega / n) (8 + 64 p / alpha + 128 (p / alpha)^2))), for convex f_i.

    Of the paper only the abstract was at hand. Let F = f(w) - f*, X = |x - x*|^2, G = |grad
    f(y)|^2, D and H the means over the workers of |grad f_i(y) - grad f_i(w)|^2 and |grad f_i(w) -
    h_i|^2, and V the variance of g, which is at most (2 omega / n) (D + H). A + marks the next
    round. With convex L-smooth f_i, theta <= 1/2, eta <= 1 / (2 L) and alpha <= 1 / (1 + omega), in
    the mean

        f(z+) - f* + theta^2 / (2 eta) X+ <= (1 - theta) F + theta^2 / (2 eta) X + 3 eta V / 4
                                             - eta G / 4 - D / (4 L)
        H+ <= (1 - alpha / 2) H + K (D + L^2 eta^2 (G + V)),  K = 2 p (1 + 2 p / alpha)
        F+ = p (f(z+) - f*) + (1 - p) F

    The second line times M = 8 omega eta / (n alpha) adds at most eta / 8 to the factors of G and
    V. So nothing is left of G, V and D if M K + 2 omega eta / n <= 1 / (4 L), and (1 - alpha / 4) M
    of H. Where theta_k = 2 / (p (k + a)) with a >= 4 / p and a >= 8 / alpha, then

        Phi_k = eta / theta_{k-1}^2 (F_k / p + M H_k) + X_k / 2

    does not grow: (1 - p theta_k) / theta_k^2 and (1 - alpha / 4) / theta_k^2 are at most
    1 / theta_{k-1}^2. So F_k = O(X_0 / (p eta k^2) + (a / k)^2 (F_0 + p M H_0)). With the p and
    alpha of "theory" the first term is of the abstract's order, L (1 + sqrt(omega^3 / n)) / k^2,
    for omega <= n, and of the order L omega^2 / (n k^2) beyond. The second, with a = 8 (1 + omega),
    needs omega / epsilon^(1/2) rounds, where the abstract has omega / epsilon^(1/3).
    """
    for_convex(setting, "CANITA")
    ratio = p / alpha
    worst = omega_of(setting, "CANITA") / setting.n * (8 + 64 * ratio + 128 * ratio * ratio)
    formula = "1 / (L_max max(2, (omega/n) (8 + 64 p/alpha + 128 (p/alpha)^2)))"
    return Step(1 / (setting.L_max * max(2.0, worst)), f"derived for CANITA: {formula}")
