"""Theorems of SAQ, the smoothness-aware quantization paper, and of CD-Adam in `mpisim theory`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from mpisim.analysis import formatting as text
from mpisim.core.errors import InputError
from mpisim.methods.method_table import Method
from mpisim.runs.setup import Setup
from mpisim.theory import saq as paper
from mpisim.theory.cd_adam import Theorem64
from mpisim.theory.saq import Fit, Quantizers, Rate
from mpisim.theory.setting import Setting
from mpisim.theory.smoothness import mean
from mpisim.theory.tables import Case

QUANTIZERS = {3: "block quant+", 4: "block quant+", 5: "quant+", 6: "quant+"}


class Numbers(NamedTuple):
    """What the theorems take from Diag(L_i), the worst of all workers; the same on every rank."""

    nu_1: float
    T_1: float
    T_B: float
    fits: dict[int, Fit]


def saq(setup: Setup, method: Method, setting: Setting, epsilon: float) -> Iterator[str]:
    """For the methods that SAQ is about, its constants and rows, or why not. Collective."""
    if not method.optimizer.theorem or setting.omega == 0:
        return
    rate, without = None, ""
    try:
        rate = setup.estimator.rate(setting)
        if rate is None:
            return
    except InputError as error:
        reason = str(error).removeprefix("method.stepsize: ").removesuffix("; give a number")
        without = f"\n  without {setup.compressor.name}: {reason}"
    title = "SAQ paper, Theorems 1 to 6"
    if not setting.convex or setting.c.mu is None:
        yield f"{title}\n  none: f must be strongly convex with a known mu, and all f_i convex"
        return
    quantizers = Quantizers(setting.n, setting.d, setting.mu)
    try:
        numbers = _numbers(setup, quantizers)
    except InputError:  # its constants are in closed form
        yield f"{title}\n  none: problem {setup.problem.name!r} has no `largest_hessian`"
        return
    sizes = {"n": setting.n, "d": setting.d, "blocks": quantizers.starts.size - 1}
    values = numbers._asdict() | {"kappa": setting.L_max / setting.mu}
    values["nu"] = paper.nu(setting.c.L_i)
    sources = text.TABLES["saq"].items()
    constants = [(n, text.number(values[n]), source.format(**sizes)) for n, source in sources]
    if rate is not None:
        constants += _at_minimiser(setup, setting, rate)
    yield f"SAQ paper, constants\n{text.columns(constants)}"
    rounds = _rounds(setup, setting, rate, numbers.fits, epsilon)
    yield f"{title}: until (1 - rho)^K <= epsilon = {text.number(epsilon)}\n{rounds}{without}"
    bounds = "rounds in O(.) without log(1/epsilon), and their bounds"
    yield f"SAQ paper, Theorems 3 to 6: {bounds}\n{_bounds(setting, quantizers, numbers)}"


def _numbers(setup: Setup, quantizers: Quantizers) -> Numbers:
    star = setup.star
    diagonals = setup.problem.double().largest_hessian().diagonals()
    one = np.array([0, quantizers.d])
    rows = [
        [paper.nu_1(row), paper.T(row, one), paper.T(row, quantizers.starts)]
        + [value for theorem in paper.THEOREMS for value in quantizers.fit(theorem, row)]
        for row in diagonals
    ]
    width = 3 + 4 * len(paper.THEOREMS)
    worst = star.all_workers(np.array(rows).reshape(star.m, width)).max(axis=0).tolist()
    nu_1_max, T_1, T_B, *rest = worst
    fits = {theorem: Fit(*rest[4 * i :][:4]) for i, theorem in enumerate(paper.THEOREMS)}
    return Numbers(nu_1_max, T_1, T_B, fits)


def _at_minimiser(setup: Setup, setting: Setting, rate: Rate) -> Iterable[tuple[str, str, str]]:
    """The terms of the experiment's theorem that depend on x* and x^0. Collective."""
    compressor, star, problem = setup.compressor, setup.star, setup.problem
    L_i = setting.c.L_i[star.first : star.first + star.m]
    x_star = setup.cache.minimiser(star)[0]
    at_star = problem.double().losses_and_gradients(x_star)[1]
    squares = compressor.dual_squares(at_star, L_i)
    weighted = compressor.cal_L_i(L_i) * squares
    sigma_0, sigma_star = mean(star, np.column_stack([squares, weighted])).tolist()
    start = float(((problem.initial_point() - x_star) ** 2).sum())
    if rate.theorem == 2:
        ratio = text.number((start + rate.weight * sigma_0) / start) if start > 0 else text.UNKNOWN
        formula = "|x - x*|^2 + 4 cal-L_max / (alpha n) gamma^2 sigma_+, over |x^0 - x*|^2"
        yield "Phi^0", ratio, formula
    else:
        ratio = text.number(rate.weight * sigma_star / start) if start > 0 else text.UNKNOWN
        formula = "2 gamma sigma*_+ / (mu n), over |x^0 - x*|^2: what epsilon is above"
        yield "sigma*_+", text.number(sigma_star), "(1/n) sum_i cal-L_i |grad f_i(x*)|^2 by L_i^†"
        yield "floor", ratio, formula


def _rounds(
    setup: Setup, setting: Setting, rate: Rate | None, fits: dict[int, Fit], epsilon: float
) -> str:
    """A line for the experiment, and one for each theorem of the paper's quantizers."""
    rates: list[tuple[int, str, Rate]] = []
    if rate is not None:
        inner = getattr(setup.compressor, "inner", None)
        name = setup.compressor.name + (f"({inner.name})" if inner is not None else "")
        rates.append((rate.theorem, name, rate))
    for theorem, fit in fits.items():
        fitted = dataclasses.replace(setting, cal_L_max=fit.cal_L)
        bound = (paper.theorem_2 if theorem in paper.DIANA else paper.theorem_1)(fitted, fit.omega)
        rates.append((theorem, QUANTIZERS[theorem], bound))
    numbers = ("omega_max", "cal-L_max", "gamma", "e-fold", "rounds")
    lines: list[tuple[str, ...]] = [("theorem", "method", "compressor", *numbers)]
    for theorem, compressor, one in rates:
        values = map(text.number, (one.omega_max, one.cal_L_max, one.step.gamma))
        ends = f"{one.e_fold:.3e}", f"{one.rounds(epsilon):.3e}"
        lines.append((f"Theorem {theorem}", one.method, compressor, *values, *ends))
    return text.columns(lines, right=(3, 4, 5, 6, 7))


def _bounds(setting: Setting, quantizers: Quantizers, numbers: Numbers) -> str:
    head = ("theorem", "", "value", "by T_1, T_B, trace", "by nu, nu_1", "O(.) with constant 1")
    L, L_max, mu = setting.c.L, setting.L_max, setting.mu
    spread = paper.nu(setting.c.L_i) * L_max / (setting.n * mu)
    lines = []
    for theorem, fit in numbers.fits.items():
        what = "L/mu + max_i cal-L_i / (n mu)"
        if theorem in paper.DIANA:
            what = "L/mu + max_i (omega_i + cal-L_i / (n mu))"
        last = spread + quantizers.bound(theorem, numbers.nu_1, L_max)
        values = (L / mu + fit.goal, L / mu + fit.bound, last, quantizers.order(theorem, L_max))
        lines.append((f"Theorem {theorem}", what, *(f"{value:.3e}" for value in values)))
    return text.columns([head, *lines], right=(2, 3, 4, 5))


def cd_adam(setup: Setup, method: Method, case: Case) -> Iterator[str]:
    """For CD-Adam, Theorem 6.4, Table 1, and Lemmas B.5 and B.6, or why not. Collective.

    The theorem's epsilon is the square of the case's.
    """
    title = "CD-Adam paper, Theorem 6.4"
    try:
        plain = not method.schedule.at and not method.weight_decay
        theorem = setup.estimator.theorem_64(case, method.optimizer, plain)
    except InputError as error:
        yield f"{title}\n  none: {error}"
        return
    if theorem is None:
        return
    epsilon = case.epsilon * case.epsilon
    goal = f"min_t E|grad f(x_t)|^2 <= epsilon = {text.number(epsilon)}"
    constants = text.TABLES["cd_adam"].items()
    numbers = [(n, text.number(getattr(theorem, key)), source) for n, (key, source) in constants]
    yield f"CD-Adam paper, constants\n{text.columns(numbers)}"
    yield f"{title}: until {goal}, with the order in Table 1\n{_cd_adam_table(theorem, epsilon)}"
    steps = {"Theorem 6.4": (theorem.alpha(epsilon), theorem.tau(epsilon))}
    if isinstance(method.stepsize, float):
        steps["the experiment's"] = method.stepsize, theorem.batch or theorem.N
    lines = [("alpha", "tau", "E|g^ - g| (B.5)", "E|g~ - g^| (B.6)", "")]
    for name, (alpha, tau) in steps.items():
        worker, server = theorem.worker_error(alpha, tau), theorem.server_error(alpha, tau)
        lines.append((f"{alpha:.3e}", str(tau), f"{worker:.3e}", f"{server:.3e}", name))
    lemmas = "CD-Adam paper, Lemmas B.5 and B.6: compression errors in the long run"
    yield f"{lemmas}\n{text.columns(lines, right=(0, 1, 2, 3))}"


def _cd_adam_table(theorem: Theorem64, epsilon: float) -> str:
    orders = theorem.orders(epsilon)
    lines = [
        (name, f"{getattr(theorem, name):.3e}", f"{orders[name]:.3e}", formula)
        for name, formula in text.TABLES["cd_adam_table"].items()
    ]
    lines += [
        ("alpha", f"{theorem.alpha(epsilon):.3e}", "", "at most this: (6.1)"),
        ("tau", str(theorem.tau(epsilon)), "", f"at least this, of N = {theorem.N}: (6.1)"),
        ("T", f"{theorem.T(epsilon):.3e}", f"{orders['T']:.3e}", "at least this: (6.1)"),
    ]
    head = ("", "value", "O(.) with constant 1", "")
    return text.columns([head, *lines], right=(1, 2))
