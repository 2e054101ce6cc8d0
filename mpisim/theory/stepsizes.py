"""The theorems' probabilities, and their largest step sizes for gradient descent on the estimate.

A step is that of the setting's ``condition``: for smooth f, or under the Polyak-Lojasiewicz (PL)
condition, if the method has a theorem for it.
"""

from __future__ import annotations

from math import cbrt, inf, sqrt

from mpisim.core.errors import InputError
from mpisim.core.numerics.functions import power
from mpisim.core.schema import package_table
from mpisim.theory.setting import MarinaTheorem, Setting, Step

THEOREMS = package_table(__file__, "theorems.toml")


def marina_probability(zeta: float, d: int) -> float:
    """p = zeta_Q / d: MARINA, Corollary 2.1, also under PL."""
    return min(1.0, zeta / d)


def vr_marina_probability(zeta: float, d: int, b: int, full: int) -> float:
    """p = min(zeta_Q / d, b' / (m + b')): MARINA, Corollary 3.1, also under PL.

    ``full``: samples in the gradient of a round with c_k = 1, m, or b online (Corollary 3.2).
    """
    return min(zeta / d, b / (full + b))


def pp_marina_probability(zeta: float, d: int, r: int, n: int) -> float:
    """p = zeta_Q r / (d n): MARINA, Corollary 4.1, also under PL."""
    return min(1.0, zeta * r / (d * n))


def gradient_descent(setting: Setting) -> Step:
    """gamma = 1 / L; under PL f(x^k) - f(x*) <= (1 - gamma mu)^k Delta_0 with the same gamma."""
    under = " (PL)" if setting.condition == "PL" and setting.mu else ""
    return Step(1 / setting.c.L, f"gradient descent{under}: 1 / L")


def scaffnew(setting: Setting) -> Step:
    """gamma = 1 / L_max, for convex f_i and any p.

    Derived: `compressed_scaffnew` with s = n. With mu > 0, f_i mu-strongly convex and x* the
    minimiser, a step of Scaffnew multiplies the mean of
    |x_i - x*|^2 + (gamma / p)^2 |h_i - grad f_i(x*)|^2 by max(1 - gamma mu, 1 - p^2) at most.
    """
    for_convex(setting, "Scaffnew")
    if setting.omega != 0:
        raise theorem_only_for("Scaffnew", "uncompressed messages")
    return Step(1 / setting.L_max, "derived for Scaffnew: 1 / L_max")


def compressed_scaffnew(setting: Setting, who: str) -> Step:
    """gamma = 1 / L_max, for convex f_i, of CompressedScaffnew and TAMUNA.

    Derived: a uniform subset of s of the n workers sends each coordinate, sigma = (s-1) / (n-1) and
    eta <= n (s - 1) / (s (n - 1)). With a_i = x_i^ - x*, u_i = gamma (h_i - grad f_i(x*)), of mean
    0, and V the variance of the a_i over the workers, a coin that shows 1 leaves on average

        |mean a|^2 + (n - s) / (s (n - 1)) V   of   |x - x*|^2,
        mean |u_i|^2 - 2 p eta sigma mean <u_i, a_i> + (p eta)^2 sigma V   of   mean |u_i|^2.

    a_i = b_i + u_i with |b_i|^2 <= (1 - gamma mu)^2 |x_i - x*|^2. So a step multiplies the mean of

        mean |x_i - x*|^2 + mean |u_i|^2 / (p^2 eta sigma)

    by max((1 - gamma mu)^2, 1 - p^2 eta sigma) at most: the weight cancels <u_i, b_i>, the bound on
    eta cancels V. With s = n this is Scaffnew. Who of the others takes part changes nothing.

    With s equal groups of `permk` one worker of each sends a coordinate. The same step and the same
    bound on eta do with v_i, u_i minus the mean of its group, and w_i = u_i - v_i: the function is

        mean |x_i - x*|^2 + n / (p^2 eta) (mean |v_i|^2 / (s - 1) + mean |w_i|^2 / s)

    and the factor max((1 - gamma mu)^2, 1 - p^2 eta (s - 1) / n).
    """
    for_convex(setting, who)
    return Step(1 / setting.L_max, f"derived for {who}: 1 / L_max")


def dcgd(setting: Setting) -> Step:
    """gamma = 1 / (L + 2 cal-L_max / n): SAQ, Theorem 1, by its proof, C.1: `_smoothness_aware`."""
    return _smoothness_aware(setting, "DCGD", 1, 2)


def diana_convex(setting: Setting) -> Step:
    """gamma = 1 / (L + 6 cal-L_max / n): SAQ, Theorem 2, by its proof, C.2: `_smoothness_aware`."""
    return _smoothness_aware(setting, "DIANA", 2, 6)


def diana_published(setting: Setting) -> Step:
    """gamma = 1 / (L_max (1 + 2 omega / n)): DIANA's step in SAQ's published code."""
    for_convex(setting, "DIANA of SAQ's published code")
    if setting.cal_L_max is not None:
        raise InputError(
            "method.rule: \"published\" is not allowed with compressor 'smooth': the published"
            " code has Theorem 2's step, too"
        )
    gamma = 1 / (setting.L_max * (1 + 2 * omega_of(setting, "DIANA") / setting.n))
    return Step(gamma, "SAQ, published code, DIANA: 1 / (L_max (1 + 2 omega / n))")


def _smoothness_aware(setting: Setting, who: str, theorem: int, factor: int) -> Step:
    """1 / (L + factor cal-L_max / n).

    cal-L_max is max_i cal-L(C_i, L_i) inside `smooth` (DCGD+, DIANA+), else omega L_max.
    """
    cal_L_max, letters = setting.cal_L_max, "cal-L_max"
    without_pl(setting, who)
    if cal_L_max is None:
        cal_L_max, letters = omega_of(setting, who) * setting.L_max, "omega L_max"
    else:
        who += "+"
    gamma = 1 / (setting.c.L + factor * cal_L_max / setting.n)
    formula = f"1 / (L + {factor} {letters} / n)"
    return Step(gamma, f"SAQ, proof of Theorem {theorem} ({who}): {formula}")


def diana_nonconvex(setting: Setting) -> Step:
    """gamma = 1 / (10 L sqrt(1 + omega/n) (1 + omega + 1)), L = max L_i.

    That of MARINA's published code: `vr_diana` with m = 1, where a sample is all of f_i.
    """
    omega = omega_of(setting, "DIANA")
    without_pl(setting, "DIANA")
    gamma = 1 / (10 * setting.L_max * sqrt(1 + omega / setting.n) * (omega + 2))
    formula = "1 / (10 L_max sqrt(1 + omega/n) (omega + 2))"
    return Step(gamma, f"MARINA, published code, DIANA: {formula}")


def vr_diana(setting: Setting, m: float) -> Step:
    """gamma = 1 / (10 L sqrt(1 + omega/n) (m^(2/3) + omega + 1)), L = max L_ij.

    That of MARINA's published code, whose L bounds that of a sample: ``m`` counts minibatches,
    m / b'.
    """
    omega = omega_of(setting, "VR-DIANA")
    without_pl(setting, "VR-DIANA")
    spread = sqrt(1 + omega / setting.n)
    gamma = 1 / (10 * setting.L_max_ij * spread * (power(cbrt(m), 2) + omega + 1))
    formula = "1 / (10 max L_ij sqrt(1 + omega/n) ((m/b')^(2/3) + omega + 1))"
    return Step(gamma, f"MARINA, published code, VR-DIANA: {formula}")


def marina(setting: Setting, p: float, theorem: MarinaTheorem = "marina") -> Step:
    """gamma = 1 / (L (1 + sqrt((1-p) omega / (p n)))), L^2 = (1/n) sum L_i^2.

    MARINA, Theorem 2.1; under PL Theorem 2.2:
    min(1 / (L (1 + sqrt(2 (1-p) omega / (p n)))), p / (2 mu)). With ``theorem`` = "permk", and for
    correlated compressors, `marina_ab`.
    """
    if setting.correlated or theorem == "permk":
        return marina_ab(setting, p)
    omega, L = omega_of(setting, "MARINA"), setting.L_rms
    gamma = 1 / (L * (1 + sqrt(setting.factor * (1 - p) * omega / (p * setting.n))))
    return by_condition(setting, "marina", gamma, p)


def marina_ab(setting: Setting, p: float) -> Step:
    """gamma = 1 / (L_- + sqrt((1-p)/p ((A - B) L_+^2 + B L_±^2))): PermK paper, Theorem 4.

    A, B of the AB inequality: omega / n and 0 for independent compressors (Lemma 1). Under PL
    Theorem 5: min(the same with 2 (1-p) for 1-p, p / (2 mu)). With independent groups of workers
    1 / (L_- + sqrt((1-p)/p) L̂_G), Theorem 10 (PL: 11), if that is larger.
    """
    if setting.A is None or setting.B is None:
        raise theorem_only_for("MARINA", "unbiased compressors")
    c, A, B = setting.c, setting.A, setting.B
    variance = (A - B) * power(c.L_plus, 2) + B * power(c.L_pm, 2)
    theorem = "marina_ab"
    if setting.groups is not None and setting.groups.L_hat_sq < variance:
        variance, theorem = setting.groups.L_hat_sq, "marina_groups"
    gamma = 1 / (c.L + sqrt(setting.factor * (1 - p) / p * variance))
    return by_condition(setting, theorem, gamma, p)


def vr_marina(setting: Setting, p: float, b: float) -> Step:
    """gamma = 1 / (L + sqrt((omega L^2 + (1+omega) cal-L^2 / b') (1-p) / (p n))).

    MARINA, Theorems 3.1 and 3.2; L^2 and cal-L^2 are the means of L_i^2 and cal-L_i^2. ``b`` is
    b', or infinity if a minibatch is all samples, so that cal-L = 0 (below Assumption 3.1).
    Under PL min(the same with 2 (1-p) for 1-p, p / (2 mu)): derived as Theorem 5 in `marina_ab`.
    """
    omega, L = omega_of(setting, "VR-MARINA"), setting.L_rms
    variance = omega * power(L, 2)
    if b < inf:
        variance += (1 + omega) * power(setting.cal_L_rms, 2) / b
    gamma = 1 / (L + sqrt(setting.factor * variance * (1 - p) / (p * setting.n)))
    return by_condition(setting, "vr_marina", gamma, p)


def pp_marina(setting: Setting, p: float, r: int) -> Step:
    """gamma = 1 / (L (1 + sqrt((1-p) (1+omega) / (p r)))): MARINA, Theorem 4.1.

    Under PL min(1 / (L (1 + sqrt(2 (1-p) (1+omega) / (p r)))), p / (2 mu)): derived likewise.
    """
    omega, L = omega_of(setting, "PP-MARINA"), setting.L_rms
    gamma = 1 / (L * (1 + sqrt(setting.factor * (1 - p) * (1 + omega) / (p * r))))
    return by_condition(setting, "pp_marina", gamma, p)


def ef21(setting: Setting) -> Step:
    """gamma = 1 / (L_- + L_+ sqrt(beta/theta)): PermK paper, Theorem 6.

    Lemma 8: theta = 1 - sqrt(1-alpha), sqrt(beta/theta) = sqrt(1-alpha) / (1 - sqrt(1-alpha)); the
    first form in (19) has a misprint, the second agrees. Under PL Theorem 7:
    min(1 / (L_- + L_+ sqrt(2 beta/theta)), theta / (2 mu)).
    """
    c, root = setting.c, sqrt(1 - alpha_of(setting, "EF21"))
    theta = 1 - root
    gamma = 1 / (c.L + c.L_plus * sqrt(setting.factor) * root / theta)
    return by_condition(setting, "ef21", gamma, theta)


def clag(setting: Setting, zeta: float) -> Step:
    """gamma = 1 / (L_- + L_+ sqrt(max(beta, zeta)/theta)), theta and beta as in `ef21`.

    Derived: with the error G = mean |g_i - grad f_i|^2 and D = mean |grad f_i' - grad f_i|^2 a
    message leaves at most (1 - theta) G + beta D, as in EF21, and a worker that is silent has
    |g_i - grad f_i'|^2 <= zeta |grad f_i' - grad f_i|^2. So (1 - theta) G + max(beta, zeta) D holds
    in any case, which is all that the proof of Theorem 6 uses. Under PL as for `ef21`.
    """
    c, root = setting.c, sqrt(1 - alpha_of(setting, "CLAG"))
    theta = 1 - root
    spread = sqrt(max(power(root, 2) / theta, zeta) / theta)
    gamma = 1 / (c.L + c.L_plus * sqrt(setting.factor) * spread)
    return by_condition(setting, "clag", gamma, theta)


def locodl(setting: Setting, mu: float) -> Step:
    """gamma = 1 / max(L_max - mu, mu), for f_i - g that are convex, g(y) = (mu/2) |y|^2.

    Derived: let a_i = x_i^ - x*, e = y^ - x*, q_i = gamma (u_i - u_i*), r = gamma (v - v*), so that
    mean q_i + r = 0, and s = p chi / (1 + 2 omega). With c = (mean a_i + e) / 2 and
    R = mean |a_i - c|^2 + |e - c|^2 a coin that shows 1 leaves on average at most

        T - (2 rho - rho^2 (1 + omega/n)) R      of T = mean |a_i|^2 + |e|^2,
        U - 2 s Q + s^2 (1 + 2 omega) R          of U = mean |q_i|^2 + |r|^2,

    Q = mean <q_i, a_i> + <r, e>. As for `compressed_scaffnew` a step then multiplies the mean of
    mean |x_i - x*|^2 + |y - x*|^2 + U / (p s) by max((1 - gamma mu')^2, 1 - p s) at most, if
    chi <= 2 rho - rho^2 (1 + omega/n); mu' is the least strong convexity of f_i - g and g. chi is
    largest with rho = chi = n / (n + omega).
    """
    for_convex(setting, "LoCoDL")
    omega_of(setting, "LoCoDL")
    return Step(1 / max(setting.L_max - mu, mu), "derived for LoCoDL: 1 / max(L_max - mu, mu)")


def theorem_only_for(method: str, cases: str) -> InputError:
    """The error of a method whose theorem does not cover this setting."""
    return InputError(f"method.stepsize: {method} has a theorem for {cases} only; give a number")


def by_condition(setting: Setting, theorem: str, gamma: float, rate: float) -> Step:
    """``gamma`` by a theorem of theorems.toml; under PL the minimum of it and ``rate`` / (2 mu).

    Under PL, gamma has the factor 2 (`Setting.factor`). That and ``rate``, at which the estimate's
    error decays, let the Lyapunov function contract by 1 - gamma mu.
    """
    about = THEOREMS[theorem]
    source = f"{about[setting.condition]}: "
    if setting.condition == "nonconvex":
        return Step(gamma, source + about["formula"].format(""))
    formula = f"min({about['formula'].format('2 ')}, {about['rate']} / (2 mu))"
    return Step(min(gamma, rate / (2 * setting.mu)), source + formula)


def omega_of(setting: Setting, who: str) -> float:
    """omega, for theorems on unbiased compressors that draw independently; else `InputError`."""
    if setting.correlated:
        raise theorem_only_for(who, "workers that compress independently of each other")
    if setting.omega is None:
        raise theorem_only_for(who, "unbiased compressors")
    return setting.omega


def alpha_of(setting: Setting, who: str) -> float:
    """alpha, for theorems on contractive compressors; else `InputError`."""
    if setting.alpha is None:
        raise theorem_only_for(who, "contractive compressors")
    return setting.alpha


def for_convex(setting: Setting, who: str) -> None:
    """`InputError` unless a theorem for convex f alone applies."""
    without_pl(setting, who)
    if not setting.convex:
        raise theorem_only_for(who, "convex problems")


def without_pl(setting: Setting, who: str) -> None:
    if setting.condition == "PL":
        raise InputError(
            f'method.stepsize: condition = "PL" is not allowed with {who}, which has no step size'
            ' for it; "nonconvex" is'
        )
