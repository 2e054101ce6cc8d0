"""The text of `mpisim theory`: the constants of an experiment, and what its theorems guarantee.

Which rows and theorems there are, the estimator decides (`Estimator.guarantees` and the two hooks
after it). Here they become text.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from math import inf, isnan
from typing import Any, NamedTuple, get_args

from mpisim.analysis import formatting as text
from mpisim.analysis import theory_theorems
from mpisim.comm.communicators import Comm
from mpisim.core.errors import InputError
from mpisim.core.schema import require
from mpisim.runs import careful
from mpisim.runs.experiment import Experiment
from mpisim.runs.setup import Setup, require_theorems
from mpisim.theory import permk_tables, tables
from mpisim.theory.permk_tables import LETTERS, Choice
from mpisim.theory.setting import Condition, Setting, setting_of
from mpisim.theory.smoothness import mean
from mpisim.theory.tables import Case

NOT_PLAIN = "theorems are about x - gamma g: what follows is without method.weight_decay"


class Facts(NamedTuple):
    """The numbers behind all parts of the report, the same on every rank.

    f_inf is None where no lower bound of f is available.
    """

    setup: Setup
    smooth: Setting
    f_0: float
    f_inf: float | None
    f_inf_source: str


def report(experiment: Experiment, epsilon: float, comm: Comm) -> str:
    """The text, on every rank. Collective; runs no round and writes no log.

    Raises `InputError` if the experiment is inconsistent or its problem has no constants.
    """
    require(1e-30 <= epsilon <= 1e30, "epsilon", epsilon, "a number from 1e-30 to 1e30")
    facts = _facts(experiment, comm)
    problem, samples = facts.setup.problem, text.span(facts.setup.rows)
    what = [
        ("title", experiment.title),
        ("problem", problem.identity),
        ("", f"n = {problem.n}, d = {problem.d}, m = {samples}"),
    ]
    delta = None if facts.f_inf is None else facts.f_0 - facts.f_inf
    gap = [
        ("f(x^0)", text.number(facts.f_0)),
        ("f_inf", f"{text.number(facts.f_inf)}, {facts.f_inf_source}"),
        ("Delta_0", f"{text.number(delta)}, f(x^0) - f_inf"),
    ]
    cases = [_case(facts, condition, epsilon) for condition in get_args(Condition)]
    blocks = [
        text.pairs(what),
        "constants\n" + text.columns(_constants(facts.smooth)),
        text.pairs(_method(facts, experiment)),
        text.pairs(gap),
        *(_table(facts, case) for case in cases),
        *theory_theorems.saq(facts.setup, experiment.method, facts.smooth, epsilon),
        *theory_theorems.cd_adam(facts.setup, experiment.method, cases[0]),
    ]
    return "\n\n".join(blocks)


def _facts(experiment: Experiment, comm: Comm) -> Facts:
    method = dataclasses.replace(experiment.method, stepsize=1.0)  # theory steps come later
    run = dataclasses.replace(experiment.run, reference=False)
    setup = Setup(dataclasses.replace(experiment, method=method, run=run), comm)
    problem, star = setup.problem, setup.star
    require_theorems(star)
    c = setup.cache.constants(star, method.smoothness)
    f_0 = float(mean(star, problem.losses(problem.initial_point())[:, None])[0])
    smooth = setting_of(c, problem, setup.compressor, star, method.smoothness)
    return Facts(setup, smooth, f_0, *_lower_bound(setup))


def _lower_bound(setup: Setup) -> tuple[float | None, str]:
    why = ""
    if setup.problem.minimum() is not None:
        return setup.cache.minimiser(setup.star)[1], "f(x*), by its formula"
    if setup.problem.convex:
        try:
            return setup.cache.minimiser(setup.star)[1], "f(x*), by Newton's method"
        except InputError:
            why = ", f has no minimiser"
    if setup.problem.nonnegative:
        return 0.0, f"a lower bound, f being nonnegative{why}"
    return None, "no lower bound of f is known, so no rounds can be predicted"


def _constants(setting: Setting) -> list[tuple[str, ...]]:
    c, square = setting.c, "root of the mean square of "

    def line(name: str, values: str, key: str, more: str = "") -> tuple[str, ...]:
        return name, values, "sharp" if c.sharp[key] else "bound", more + c.source[key]

    cal_L = [
        line("cal-L_i", text.span(c.cal_L_i), "cal_L_i"),
        line("cal-L", text.number(setting.cal_L_rms), "cal_L_i", f"{square}cal-L_i: "),
    ]
    return [
        line("L_i", text.span(c.L_i), "L_i"),
        line("L = L_-", text.number(c.L), "L"),
        line("L (MARINA)", text.number(setting.L_rms), "L_i", f"{square}L_i: "),
        line("L_+", text.number(c.L_plus), "L_plus"),
        line("L_±", text.number(c.L_pm), "L_pm"),
        *([("cal-L_i", text.UNKNOWN, "", "not known")] if isnan(setting.cal_L_rms) else cal_L),
        line("mu", text.number(c.mu), "mu") if c.mu else ("mu", text.UNKNOWN, "", "not known"),
    ]


def _method(facts: Facts, experiment: Experiment) -> list[tuple[str, str]]:
    compressor, estimator = facts.setup.compressor, facts.setup.estimator
    c = {"omega": compressor.omega, "alpha": compressor.alpha, "zeta": compressor.density}
    more = {"A": compressor.A, "B": compressor.B, "cal-L_max": compressor.cal_L_max}
    c |= {name: value for name, value in more.items() if value is not None}
    values = estimator.parameters() | estimator.batch_sizes()
    numbers = {estimator.letters.get(key, key): value for key, value in values.items()}
    return [
        ("compressor", compressor.name),
        ("", _equations(c)),
        *_groups(facts),
        ("method", experiment.method.name),
        ("", _equations(numbers)),
        *_steps(facts, experiment),
        *([("", NOT_PLAIN)] if experiment.method.weight_decay else []),
    ]


def _equations(numbers: dict[str, Any]) -> str:
    """``p = 0.1, b' = 8``."""
    return ", ".join(f"{key.rstrip('_')} = {text.number(x)}" for key, x in numbers.items())


def _groups(facts: Facts) -> Iterable[tuple[str, str]]:
    """The constants inside groups of workers that compress independently."""
    c = facts.smooth.groups
    if c is not None:
        sizes = f"{c.L_pm.size} groups of {text.span(c.groups.sizes)} workers"
        spans = f"L_+ {text.span(c.L_plus)}, L_± {text.span(c.L_pm)} inside"
        yield "", f"{sizes}, {spans}; L̂_G = {text.number(c.L_hat_sq**0.5)}"


def _steps(facts: Facts, experiment: Experiment) -> Iterable[tuple[str, str]]:
    """The theory step, and the experiment's step if it differs."""
    method = experiment.method
    multiple = method.multiple()
    theory = None
    try:
        if not method.optimizer.theorem:
            raise InputError(f"method.stepsize: there is no theorem for {method.optimizer.name!r}")
        setting = dataclasses.replace(facts.smooth, condition=method.condition())
        theory = careful.theory_step(facts.setup.estimator, setting)
        yield "theory step", f"{text.number(theory.gamma)}, {theory.source}"
    except InputError as error:
        yield "theory step", f"none: {str(error).removeprefix('method.stepsize: ')}"
    if multiple is None:
        times = f", {text.number(method.stepsize / theory.gamma)} x theory" if theory else ""  # type: ignore[operator]
        yield "step size", f"{text.number(method.stepsize)}{times}"
    elif multiple != 1 and theory is not None:
        step = text.number(multiple * theory.gamma)
        yield "step size", f"{step}, {text.number(multiple)} x theory"


def _table(facts: Facts, case: Case) -> str:
    """Table 1 or 2 for the experiment, or the reason why there is none, and the PermK paper's."""
    number, goal = "1", f"E|grad f|^2 <= epsilon^2 = {text.number(case.epsilon**2)}"
    if case.setting.condition == "PL":
        number, goal = "2", f"E f - f(x*) <= epsilon = {text.number(case.epsilon)}, f being PL"
    title = f"MARINA paper, Table {number}: until {goal}"
    if facts.f_inf is None:
        return f"{title}\n  none: {facts.f_inf_source}"
    if case.setting.condition == "PL" and case.setting.c.mu is None:
        return f"{title}\n  none: the problem has no known mu"
    estimator = facts.setup.estimator
    rows, missing = tables.rows(case)
    try:
        rows = tables.merged(rows, careful.guarantees(estimator, case))
    except InputError as error:
        missing.append(f"{estimator.name}: {str(error).removeprefix('method.stepsize: ')}")
    lines = [("setup", "method", "rounds", "bits/worker", "samples/worker", "", "source")]
    for row in rows:
        numbers = f"{row.rounds:.3e}", f"{row.bits:.3e}", f"{row.calls:.3e}"
        lines.append((row.setup, row.method, *numbers, row.kind, row.source))
    shown = text.columns(lines, right=(2, 3, 4))
    table = "\n".join([title, shown, *(f"  without {reason}" for reason in missing)])
    return f"{table}\n\n{_permk(case)}" if estimator.permk_tables else table


def _case(facts: Facts, condition: Condition, epsilon: float) -> Case:
    estimator = facts.setup.estimator
    sizes, parameters = estimator.batch_sizes(), estimator.parameters()
    return Case(
        setting=dataclasses.replace(facts.smooth, condition=condition),
        rows=facts.setup.rows,
        delta=inf if facts.f_inf is None else max(0.0, facts.f_0 - facts.f_inf),
        epsilon=epsilon,
        b=sizes.get("batch"),
        big_b=sizes.get("big_batch"),
        first_b=parameters.get("first_batch"),
        r=parameters.get("participants"),
    )


def _permk(case: Case) -> str:
    """Tables 1, 3 and 4 of the PermK paper, or, under PL, Tables 3 and 6."""
    pl = case.setting.condition == "PL"
    head: tuple[str, ...] = ("method", "p", "K", "rounds", "bits/worker", "source")
    lines = [(*_choice(choice), source) for choice, source in permk_tables.table_3(case)]
    rounds = text.columns([head, *lines], right=(1, 2, 3, 4))
    title = f"PermK paper, Table 3{' under PL' if pl else ''}: K = ceil(d/n), p = zeta / d"
    blocks = [f"{title}\n{rounds}", _optimized(case, "6" if pl else "4")]
    if not pl:
        rows = [tuple(map(text.number, row)) for row in permk_tables.constants(case)]
        table = text.columns([("compressor", "A", "B", "source"), *rows], right=(1, 2))
        blocks.insert(0, f"PermK paper, Table 1\n{table}")
    return "\n\n".join(blocks)


def _optimized(case: Case, number: str) -> str:
    """For each method, a line with the lemma's parameters and one with the best."""
    lemma = f"Lemma {(13 if number == '4' else 15) + (case.setting.d < case.setting.n)}"
    head = ("method", "p", "K", "rounds", "bits/worker", "", "O(.) with constant 1")
    lines: list[tuple[str, ...]] = [head]
    for stated, best, order in permk_tables.optimized(case):
        source = lemma
        if stated.method == "groups":
            source = "(51)" if permk_tables.equation_51(case.setting) else "derived here"
        lines.append((*_choice(stated), source, "-" if isnan(order) else f"{order:.3e}"))
        lines.append((*_choice(best), "best", ""))
    table = text.columns(lines, right=(1, 2, 3, 4, 6))
    return f"PermK paper, Table {number}: p and K for the fewest bits\n{table}"


def _choice(choice: Choice) -> tuple[str, str, str, str, str]:
    p = "-" if choice.method == "topk" else f"{choice.p:.4g}"
    k = "-" if choice.method in ("permk", "groups") else str(choice.k)
    return LETTERS[choice.method], p, k, f"{choice.rounds:.3e}", f"{choice.bits:.3e}"
