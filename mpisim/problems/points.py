"""Points of a problem: one x for all workers, shape (d,), or a row for each of them.

Local steps, and messages down that differ, leave every worker at a point of its own. A method of a
problem that is written for one point is then called once for each worker, and gives its row.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

Method = Callable[..., Any]


def each(x: np.ndarray, count: int) -> Iterable[np.ndarray]:
    """The points of ``count`` workers, each (d,)."""
    return x if x.ndim == 2 else [x] * count


def require_point(x: np.ndarray, d: int, count: int) -> bool:
    """Whether x is one point (d,), not ``count`` of them in rows; `ValueError` if neither."""
    if x.shape == (d,):
        return True
    if x.shape != (count, d):
        raise ValueError(
            f"points of shape {tuple(x.shape)}; allowed: {(d,)} for one, or {(count, d)} for one of"
            " each worker"
        )
    return False


def accept_points(cls: type, native: bool) -> None:
    """Let the methods that ``cls`` defines take points, and refuse other shapes.

    native : they compute with a row for each worker themselves; otherwise they take (d,) only
    """
    for name in ROWS:
        if (method := vars(cls).get(name)) is not None:
            rowwise: Method = functools.partial(one_by_one, name, method)
            if native or name == "lazy_gradients":
                rowwise = method
            elif name == "gradients":
                rowwise = _gradients
            setattr(cls, name, _accepting(name, method, rowwise))


def _accepting(name: str, method: Method, rowwise: Method) -> Method:
    """``method`` where all points are (d,), ``rowwise`` where a worker has a row of its own."""
    two = name == "batch_changes"

    @functools.wraps(method)
    def call(self: Any, x: np.ndarray, *rest: Any) -> Any:
        if x.shape == (self.d,) and not (two and rest[0].shape != x.shape):
            return method(self, x, *rest)
        if self.copies and x.shape == (self.copies, self.d):
            return method(self, x, *rest)
        count = len(rest[-1]) if name in OF_SOME else self.m
        one = require_point(x, self.d, count)
        if two:
            one = require_point(rest[0], self.d, count) and one
        return (method if one else rowwise)(self, x, *rest)

    return call


def one_by_one(name: str, method: Method, problem: Any, xs: np.ndarray, *rest: Any) -> Any:
    """What ``method``, called ``name``, gives for one worker after the other, each at its point."""
    members = rest[-1] if name in OF_SOME else np.arange(problem.m)
    points = [each(xs, len(members))]
    if name == "batch_changes":
        points, rest = [*points, each(rest[0], len(members))], rest[1:]
    losses = np.empty(len(members))
    rows = problem.arrays.zeros((len(members), problem.d), problem.dtype)
    for i, at in enumerate(zip(*points, strict=True)):
        if name in OF_SOME:
            rows[i] = method(problem, *at, *(part[i : i + 1] for part in rest))[0]
            continue
        result = method(problem, *at, *rest)
        if name == "losses":
            losses[i] = result[i]
        elif name == "losses_and_gradients":
            losses[i], rows[i] = result[0][i], result[1][i]
        else:
            rows[i] = result[i]
    return {"losses": losses, "losses_and_gradients": (losses, rows)}.get(name, rows)


def _gradients(problem: Any, xs: np.ndarray) -> np.ndarray:
    return problem.gradients_of(xs, np.arange(problem.m))


ROWS = (
    "losses",
    "gradients",
    "gradients_of",
    "lazy_gradients",
    "losses_and_gradients",
    "batch_gradients",
    "batch_gradients_of",
    "batch_changes",
)
OF_SOME = "gradients_of", "batch_gradients_of"
