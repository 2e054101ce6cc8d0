"""The text of `mpisim theory`: what the theorems guarantee for an experiment."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from math import isinf
from typing import TYPE_CHECKING, Any

from mpisim.analysis import text
from mpisim.analysis.guarantees import cd_adam as report_cd_adam
from mpisim.analysis.guarantees import permk as report_permk
from mpisim.analysis.guarantees import saq as report_saq
from mpisim.core.errors import InputError
from mpisim.methods.estimators.vr_marina import VRMarina
from mpisim.runs.experiment import Experiment
from mpisim.runs.setup import Setup
from mpisim.theory import tables
from mpisim.theory.collective import mean
from mpisim.theory.complexity import Case, Guarantee
from mpisim.theory.setting import Condition, Setting, setting_of
from mpisim.theory.smoothness import Constants

if TYPE_CHECKING:
    from mpi4py import MPI

COMPARED = ("marina", "ef21")  # what the PermK paper's tables compare
SAQ = ("naive", "diana")  # DCGD and DIANA


@dataclasses.dataclass(frozen=True)
class Facts:
    """The numbers behind all parts of the report, the same on every rank.

    f_inf is None where no lower bound of f is known.
    """

    setup: Setup
    c: Constants
    smooth: Setting
    f_0: float
    f_inf: float | None
    f_inf_source: str


def report(experiment: Experiment, epsilon: float, comm: MPI.Intracomm) -> str:
    """The whole text, on every rank. Collective; runs no round and writes no log.

    Raises `InputError` if the experiment is inconsistent or its problem has no known constants.
    """
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
    blocks = [
        text.aligned(what),
        "constants\n" + text.columns(_constants(facts.c)),
        text.aligned(_method(facts, experiment)),
        text.aligned(gap),
        _table(facts, "nonconvex", epsilon),
        _table(facts, "PL", epsilon),
    ]
    compressed = facts.setup.compressor.omega != 0
    if facts.setup.estimator.name in SAQ and compressed and experiment.method.optimizer.theorem:
        blocks.append(report_saq.tables(facts.setup, facts.smooth, epsilon))
    if report_cd_adam.is_cd_adam(facts.setup, experiment.method):
        its = facts.setup, experiment.method, facts.smooth
        blocks.append(report_cd_adam.tables(*its, delta, epsilon))
    return "\n\n".join(blocks)


def _facts(experiment: Experiment, comm: MPI.Intracomm) -> Facts:
    method = dataclasses.replace(experiment.method, stepsize=1.0)  # theory steps come later
    run = dataclasses.replace(experiment.run, reference=False)
    setup = Setup(dataclasses.replace(experiment, method=method, run=run), comm)
    problem, star = setup.problem, setup.star
    c = setup.cache.constants(star, method.smoothness)
    f_0 = float(mean(star, problem.losses(problem.initial_point())[:, None])[0])
    smooth = setting_of(c, problem, setup.compressor, star, method.smoothness)
    return Facts(setup, c, smooth, f_0, *_lower_bound(setup))


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


def _constants(c: Constants) -> list[tuple[str, ...]]:
    def line(name: str, values: str, key: str, more: str = "") -> tuple[str, ...]:
        return name, values, "sharp" if c.sharp[key] else "bound", more + c.source[key]

    seen = Setting(len(c.L_i), 0, False, c, None, None, 0.0)
    square = "root of the mean square of "
    return [
        line("L_i", text.span(c.L_i), "L_i"),
        line("L = L_-", text.number(c.L), "L"),
        line("L (MARINA)", text.number(seen.L_rms), "L_i", f"{square}L_i: "),
        line("L_+", text.number(c.L_plus), "L_plus"),
        line("L_±", text.number(c.L_pm), "L_pm"),
        line("cal-L_i", text.span(c.cal_L_i), "cal_L_i"),
        line("cal-L", text.number(seen.cal_L_rms), "cal_L_i", f"{square}cal-L_i: "),
        line("mu", text.number(c.mu), "mu") if c.mu else ("mu", text.UNKNOWN, "", "not known"),
    ]


def _method(facts: Facts, experiment: Experiment) -> list[tuple[str, str]]:
    compressor, estimator = facts.setup.compressor, facts.setup.estimator
    c: dict[str, float | None] = {"omega": compressor.omega, "alpha": compressor.alpha}
    c["zeta"] = compressor.density
    if compressor.A is not None:
        c |= {"A": compressor.A, "B": compressor.B}
    if compressor.cal_L_max is not None:
        c["cal-L_max"] = compressor.cal_L_max
    values = estimator.parameters() | estimator.batch_sizes()
    numbers = {estimator.letters.get(key, key): value for key, value in values.items()}
    return [
        ("compressor", compressor.name),
        ("", _equations(c)),
        *_groups(facts),
        ("method", experiment.method.name),
        ("", _equations(numbers)),
        *_steps(facts, experiment),
    ]


def _equations(numbers: dict[str, Any]) -> str:
    """``p = 0.1, b' = 8``."""
    return ", ".join(f"{key.rstrip('_')} = {text.number(x)}" for key, x in numbers.items())


def _groups(facts: Facts) -> Iterable[tuple[str, str]]:
    """The constants inside groups of workers that compress independently."""
    own = facts.smooth.groups
    if own is not None:
        sizes = f"{own.L_pm.size} groups of {text.span(own.groups.sizes)} workers"
        spans = f"L_+ {text.span(own.L_plus)}, L_± {text.span(own.L_pm)} inside"
        yield "", f"{sizes}, {spans}; L̂_G = {text.number(own.L_hat_sq**0.5)}"


def _steps(facts: Facts, experiment: Experiment) -> Iterable[tuple[str, str]]:
    """The theory step, and the experiment's own step if it differs."""
    method = experiment.method
    multiple = method.multiple()
    theory = None
    try:
        if not method.optimizer.theorem:
            raise InputError(f"method.stepsize: there is no theorem for {method.optimizer.name!r}")
        setting = dataclasses.replace(facts.smooth, condition=method.condition())
        theory = facts.setup.estimator.theory_step(setting)
        yield "theory step", f"{text.number(theory.gamma)}, {theory.source}"
    except InputError as error:
        yield "theory step", f"none: {str(error).removeprefix('method.stepsize: ')}"
    if multiple is None:
        times = f", {text.number(method.stepsize / theory.gamma)} x theory" if theory else ""  # type: ignore[operator]
        yield "step size", f"{text.number(method.stepsize)}{times}"
    elif multiple != 1 and theory is not None:
        step = text.number(multiple * theory.gamma)
        yield "step size", f"{step}, {text.number(multiple)} x theory"


def _table(facts: Facts, condition: Condition, epsilon: float) -> str:
    """Table 1 or 2 for the experiment, or the reason why there is none."""
    number, goal = "1", f"E|grad f|^2 <= epsilon^2 = {text.number(epsilon**2)}"
    if condition == "PL":
        number, goal = "2", f"E f - f(x*) <= epsilon = {text.number(epsilon)}, f being PL"
    title = f"MARINA paper, Table {number}: until {goal}"
    if facts.f_inf is None:
        return f"{title}\n  none: {facts.f_inf_source}"
    if condition == "PL" and facts.c.mu is None:
        return f"{title}\n  none: the problem has no known mu"
    case = _case(facts, condition, epsilon)
    rows, missing = tables.rows(case)
    try:
        rows += facts.setup.estimator.guarantees(case)
    except InputError as error:
        missing.append(f"{case.method}: {str(error).removeprefix('method.stepsize: ')}")
    head = ("setup", "method", "rounds", "bits/worker", "samples/worker", "", "source")
    lines = text.columns([head, *(_cells(row) for row in rows)], right=(2, 3, 4))
    table = "\n".join([title, lines, *(f"  without {reason}" for reason in missing)])
    return f"{table}\n\n{report_permk.tables(case)}" if case.method in COMPARED else table


def _case(facts: Facts, condition: Condition, epsilon: float) -> Case:
    estimator, setup = facts.setup.estimator, facts.setup
    sizes = estimator.batch_sizes()
    return Case(
        setting=dataclasses.replace(facts.smooth, condition=condition),
        m=setup.oracle.samples,
        delta=max(0.0, facts.f_0 - (facts.f_inf or 0.0)),
        epsilon=epsilon,
        method=estimator.name,
        p=getattr(estimator, "p", None),
        b=sizes.get("batch"),
        big_b=sizes.get("big_batch"),
        first_b=getattr(estimator, "first_batch", None),
        r=getattr(estimator, "participants", None),
        theorem=getattr(estimator, "theorem", "marina"),
        whole=isinstance(estimator, VRMarina) and isinf(estimator.noise_batch()),
    )


def _cells(row: Guarantee) -> tuple[str, ...]:
    numbers = (f"{value:.3e}" for value in (row.rounds, row.bits, row.calls))
    return row.setup, row.method, *numbers, row.kind, row.source
