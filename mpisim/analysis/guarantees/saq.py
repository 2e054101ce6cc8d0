"""Theorems 1 to 6 of SAQ, the smoothness-aware quantization paper, in `mpisim theory`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np

from mpisim.analysis import text
from mpisim.core.errors import InputError
from mpisim.methods.estimators.diana import Diana
from mpisim.runs.setup import Setup
from mpisim.theory.collective import mean
from mpisim.theory.saq import Rate, theorem_1, theorem_2
from mpisim.theory.saq_quantizers import DIANA, THEOREMS, Fit, Quantizers, T, nu, nu_1
from mpisim.theory.setting import Setting

QUANTIZERS = {3: "block quant+", 4: "block quant+", 5: "quant+", 6: "quant+"}


@dataclasses.dataclass(frozen=True)
class Numbers:
    """What the theorems take from Diag(L_i), the worst of all workers; the same on every rank."""

    nu_1: float
    T_1: float
    T_B: float
    fits: dict[int, Fit]


def tables(setup: Setup, setting: Setting, epsilon: float) -> str:
    """The constants and rows of the theorems, or why there are none. Collective."""
    title = "SAQ paper, Theorems 1 to 6"
    if not setting.convex or setting.c.mu is None:
        reason = "f must be strongly convex with a known mu, and all f_i convex"
        return f"{title}\n  none: {reason}"
    quantizers = Quantizers(setting.n, setting.d, setting.mu)
    numbers = _numbers(setup, quantizers)
    try:
        own, more = _own(setup, setting)
        missing = ""
    except InputError as error:
        own, more = None, []
        reason = str(error).removeprefix("method.stepsize: ").removesuffix("; give a number")
        missing = f"\n  without {setup.compressor.name}: {reason}"
    constants = [*_constants(setting, quantizers, numbers), *more]
    return "\n\n".join(
        [
            f"SAQ paper, constants\n{text.columns(constants)}",
            f"{title}: until (1 - rho)^K <= epsilon = {text.number(epsilon)}\n"
            + _rounds(_rates(setup, setting, own, numbers), epsilon)
            + missing,
            "SAQ paper, Theorems 3 to 6: rounds in O(.) without log(1/epsilon), and their bounds\n"
            + _bounds(setting, quantizers, numbers),
        ]
    )


def _numbers(setup: Setup, quantizers: Quantizers) -> Numbers:
    star = setup.star
    diagonals = setup.problem.double().largest_hessian().diagonals()
    one = np.array([0, quantizers.d])
    rows = [
        [nu_1(row), T(row, one), T(row, quantizers.starts)]
        + [value for theorem in THEOREMS for value in quantizers.fit(theorem, row)]
        for row in diagonals
    ]
    width = 3 + 4 * len(THEOREMS)
    worst = star.all_workers(np.array(rows).reshape(star.m, width)).max(axis=0).tolist()
    nu_1_max, T_1, T_B, *rest = worst
    fits = {theorem: Fit(*rest[4 * i :][:4]) for i, theorem in enumerate(THEOREMS)}
    return Numbers(nu_1_max, T_1, T_B, fits)


def _constants(
    setting: Setting, quantizers: Quantizers, numbers: Numbers
) -> Iterable[tuple[str, str, str]]:
    n, d, blocks = setting.n, setting.d, quantizers.starts.size - 1
    kappa = setting.L_max / setting.mu
    yield "kappa", text.number(kappa), "L_max / mu"
    yield "nu", text.number(nu(setting.c.L_i)), f"sum_i L_i / max_i L_i, from 1 to n = {n}: Def. 8"
    trace = f"max_i sum_j L_i;jj / max_j L_i;jj, from 1 to d = {d}: Def. 8"
    yield "nu_1", text.number(numbers.nu_1), trace
    yield "T_1", text.number(numbers.T_1), "max_i |Diag(L_i)| / sqrt(d): Appendix D.2"
    formula = f"max_i (1/d) sum_l sqrt(d_l) |Diag(L_i^ll)|, B = {blocks} blocks: Appendix D.2"
    yield "T_B", text.number(numbers.T_B), formula


def _own(setup: Setup, setting: Setting) -> tuple[tuple[str, Rate], list[tuple[str, str, str]]]:
    """The row of the experiment's method and compressor, and what its theorem says besides.

    `InputError` if no theorem applies.
    """
    setup.estimator.theory_step(setting)  # says why there is no theorem
    compressor, star, c = setup.compressor, setup.star, setting.c
    omega_max = compressor.shift_omega
    assert omega_max is not None
    own_L_i = c.L_i[star.first : star.first + star.m]
    problem = setup.problem
    x_star = setup.cache.minimiser(star)[0]
    at_star = problem.double().losses_and_gradients(x_star)[1]
    squares = compressor.dual_squares(at_star, own_L_i)
    weighted = compressor.cal_L_i(own_L_i) * squares
    sigma_0, sigma_star = mean(star, np.column_stack([squares, weighted])).tolist()
    start = float(((problem.initial_point() - x_star) ** 2).sum())
    if isinstance(setup.estimator, Diana):
        alpha = float(setup.estimator.alpha)
        rate = theorem_2(setting, omega_max, alpha)
        weight = 4 * rate.cal_L_max / (alpha * setting.n) * rate.step.gamma**2
        ratio = text.number((start + weight * sigma_0) / start) if start > 0 else text.UNKNOWN
        formula = "|x - x*|^2 + 4 cal-L_max / (alpha n) gamma^2 sigma_+, over |x^0 - x*|^2"
        return ("Theorem 2", rate), [("Phi^0", ratio, formula)]
    rate = theorem_1(setting, omega_max)
    floor = 2 * rate.step.gamma * sigma_star / (setting.mu * setting.n)
    ratio = text.number(floor / start) if start > 0 else text.UNKNOWN
    formula = "2 gamma sigma*_+ / (mu n), over |x^0 - x*|^2: what epsilon is above"
    return ("Theorem 1", rate), [
        ("sigma*_+", text.number(sigma_star), "(1/n) sum_i cal-L_i |grad f_i(x*)|^2 by L_i^†"),
        ("floor", ratio, formula),
    ]


def _rates(
    setup: Setup, setting: Setting, own: tuple[str, Rate] | None, numbers: Numbers
) -> Iterable[tuple[str, str, Rate]]:
    if own is not None:
        inner = getattr(setup.compressor, "inner", None)
        name = setup.compressor.name + (f"({inner.name})" if inner is not None else "")
        yield own[0], name, own[1]
    for theorem, fit in numbers.fits.items():
        fitted = dataclasses.replace(setting, cal_L_max=fit.cal_L)
        rate = (theorem_2 if theorem in DIANA else theorem_1)(fitted, fit.omega)
        yield f"Theorem {theorem}", QUANTIZERS[theorem], rate


def _rounds(rates: Iterable[tuple[str, str, Rate]], epsilon: float) -> str:
    numbers = ("omega_max", "cal-L_max", "gamma", "e-fold", "rounds")
    head = ("theorem", "method", "compressor", *numbers)
    lines = [
        (
            theorem,
            rate.method,
            compressor,
            *map(text.number, (rate.omega_max, rate.cal_L_max, rate.step.gamma)),
            f"{rate.e_fold:.3e}",
            f"{rate.rounds(epsilon):.3e}",
        )
        for theorem, compressor, rate in rates
    ]
    return text.columns([head, *lines], right=(3, 4, 5, 6, 7))


def _bounds(setting: Setting, quantizers: Quantizers, numbers: Numbers) -> str:
    head = ("theorem", "", "value", "by T_1, T_B, trace", "by nu, nu_1", "O(.) with constant 1")
    L, L_max, mu = setting.c.L, setting.L_max, setting.mu
    spread = nu(setting.c.L_i) * L_max / (setting.n * mu)
    lines = []
    for theorem, fit in numbers.fits.items():
        what = "L/mu + max_i cal-L_i / (n mu)"
        if theorem in DIANA:
            what = "L/mu + max_i (omega_i + cal-L_i / (n mu))"
        last = spread + quantizers.bound(theorem, numbers.nu_1, L_max)
        values = (L / mu + fit.goal, L / mu + fit.bound, last, quantizers.order(theorem, L_max))
        lines.append((f"Theorem {theorem}", what, *(f"{value:.3e}" for value in values)))
    return text.columns([head, *lines], right=(2, 3, 4, 5))
