"""Parts of plugins, called so that a mistake ends the run with a line.

The line names their class. mpisim's are called as they are: tests try them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mpisim.core.arrays import is_tensor
from mpisim.core.errors import InputError
from mpisim.core.registry import of_mpisim
from mpisim.methods.estimators.base import Estimator
from mpisim.methods.optimizers import Optimizer
from mpisim.problems.base import Problem
from mpisim.runs.metrics import Metric
from mpisim.theory.setting import Setting, Step
from mpisim.theory.tables import Case, Guarantee


def is_plugin(part: object) -> bool:
    """Whether a part's class is not one of mpisim's."""
    return not of_mpisim(type(part))


def estimate(estimator: Estimator, name: str, x: Any) -> Any:
    """g^k of the estimator's ``name``, "start" or "estimate"; `InputError` unless it is as x is."""
    return _as_x(estimator, name, _unchanged(estimator, name, x), x)


def step(optimizer: Optimizer, x: Any, g: Any, gamma: float) -> Any:
    """x^{k+1} of `Optimizer.step` on copies, as others keep x and g; `InputError` unless as x is.

    Also if it changes x or g.
    """
    given = _copy(x), _copy(g)
    following = optimizer.step(*given, gamma)
    for before, after in zip((x, g), given, strict=True):
        if after._version if is_tensor(x) else before.tobytes() != after.tobytes():
            line = "step changes x or g in place; allowed: a new array for x^{k+1}"
            raise _wrong(optimizer, line)
    return _copy(_as_x(optimizer, "step", following, x))


def _copy(v: Any) -> Any:
    return v.clone() if is_tensor(v) else v.copy()


def _as_x(part: object, name: str, v: Any, x: Any) -> Any:
    """What ``name`` returned; `InputError` unless it is an array of x's shape and type."""
    kind, shape = getattr(v, "dtype", type(v).__name__), getattr(v, "shape", None)
    if shape is None or (kind, tuple(shape)) != (x.dtype, tuple(x.shape)):
        of_shape = "" if shape is None else f" of shape {tuple(shape)}"
        allowed = f"{x.dtype} of shape {tuple(x.shape)}, as x"
        raise _wrong(part, f"{name} returned {kind}{of_shape}; allowed: {allowed}")
    return v


def require_gradients(problem: Problem, x: Any) -> None:
    """`InputError` unless the problem gives losses (m,) and gradients (m, d) at x."""
    found, right = problem.losses_and_gradients(x), [(problem.m,), (problem.m, problem.d)]
    pair = found if isinstance(found, tuple | list) else [found]
    shapes = [getattr(one, "shape", type(one).__name__) for one in pair]
    if shapes != right:
        allowed = f"losses of shape {right[0]}, gradients of shape {right[1]}"
        raise _wrong(problem, f"losses_and_gradients returned {shapes}; allowed: {allowed}")


def theory_step(estimator: Estimator, setting: Setting) -> Step:
    """The estimator's; `InputError` unless it is a step. Collective."""
    step = estimator.theory_step(setting)
    if not isinstance(step, Step):
        allowed = "mpisim.theory.setting.Step(gamma, source), or raise mpisim.InputError"
        raise _wrong(estimator, f"theory_step returned {step!r}; allowed: {allowed}")
    return step


def guarantees(estimator: Estimator, case: Case) -> list[Guarantee]:
    """The estimator's; `InputError` unless they are rows. Collective."""
    rows = estimator.guarantees(case)
    if not isinstance(rows, list) or not all(isinstance(row, Guarantee) for row in rows):
        allowed = "a list of mpisim.theory.tables.Guarantee"
        raise _wrong(estimator, f"guarantees returned {rows!r}; allowed: {allowed}")
    return rows


def passed(metric: Metric, x: Any) -> None:
    """Show x^k to the metric."""
    if is_plugin(metric):
        _unchanged(metric, "passed", x)
    else:
        metric.passed(x)


def values(metric: Metric, x: Any) -> tuple[float, ...]:
    """The metric's values at x; `InputError` unless there is one for each of its columns."""
    if not is_plugin(metric):
        return metric.values(x)
    found, names = _unchanged(metric, "values", x), [name for name, *_ in metric.columns]
    numbers = isinstance(found, tuple | list | np.ndarray) and all(map(_is_number, found))
    if not numbers or len(found) != len(names):
        allowed = f"a tuple with a number for each of its columns, {', '.join(names)}"
        raise _wrong(metric, f"values returned {found!r}; allowed: {allowed}")
    return tuple(found)


def _is_number(value: Any) -> bool:
    return np.ndim(value) == 0 and np.asarray(value).dtype.kind in "biuf"


def require_columns(metric: Metric, known: set[str]) -> None:
    """`InputError` for a column that is none, or has one of the ``known`` names, which it joins."""
    for column in getattr(metric, "columns", [None]):
        if not (isinstance(column, tuple) and len(column) == 4 and isinstance(column[1], type)):
            allowed = "mpisim.runs.metrics.column(NAME, MEANING, UNIT)"
            raise _wrong(metric, f"columns has {column!r}; allowed: {allowed}")
        if column[0] in known:
            raise _wrong(metric, f"its column {column[0]!r} is in the log already; rename it")
        known.add(column[0])


def _unchanged(part: Any, name: str, x: Any) -> Any:
    """``part.name(x)``; `InputError` if it changes x in place, which is the run's."""
    before = x._version if is_tensor(x) else x.tobytes()
    result = getattr(part, name)(x)
    if before != (x._version if is_tensor(x) else x.tobytes()):
        raise _wrong(part, f"{name} changes x in place; allowed: work on a copy of it")
    return result


def _wrong(part: object, line: str) -> InputError:
    kind = type(part)
    return InputError(f"{kind.__module__}.{kind.__qualname__}: {line}")
