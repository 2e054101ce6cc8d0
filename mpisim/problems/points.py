"""Points of a problem: one x for all workers, shape (d,), or a row for each of them.

Local steps, and messages down that differ, leave every worker at a point of its own. A method of a
problem that is written for one point is then called once for each worker, and gives its row. One
that is written without ``members`` computes all workers, and the rows of some are taken.
"""

from __future__ import annotations

import functools
import inspect
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
            if name in OF_SOME and "members" not in inspect.signature(method).parameters:
                method = _lazy_of_all(method) if name == "lazy_gradients" else _of_all(method)
            takes_rows = native or name == "lazy_gradients"
            rowwise = method if takes_rows else functools.partial(one_by_one, name, method)
            setattr(cls, name, _accepting(name, method, rowwise))


def _of_all(method: Method) -> Method:
    """The rows of ``members``, taken from those of all workers, which ``method`` computes.

    The others are at 0 where each has a point, and have sample 0 in a batch.
    """

    @functools.wraps(method)
    def call(self: Any, x: np.ndarray, *batch: np.ndarray, members: Any = None) -> Any:
        if members is None:
            return method(self, x, *batch)
        every = [np.zeros((self.m, part.shape[1]), np.int64) for part in batch]
        for whole, part in zip(every, batch, strict=True):
            whole[members] = part
        if x.ndim == 2:
            points = self.arrays.zeros((self.m, self.d), self.dtype)
            points[members] = x
            x = points
        return method(self, x, *every)[members]

    return call


def _lazy_of_all(method: Method) -> Method:
    """``method`` for all workers; the rows of ``members`` are computed at once."""

    @functools.wraps(method)
    def call(self: Any, x: np.ndarray, *, members: Any = None) -> Any:
        return method(self, x) if members is None else self.gradients(x, members=members)

    return call


def _accepting(name: str, method: Method, rowwise: Method) -> Method:
    """``method`` where all points are (d,), ``rowwise`` where a worker has a row of its own."""
    two = name == "batch_changes"

    @functools.wraps(method)
    def call(self: Any, x: np.ndarray, *rest: Any, **some: Any) -> Any:
        if x.shape == (self.d,) and not (two and rest[0].shape != x.shape):
            return method(self, x, *rest, **some)
        if self.copies and x.shape == (self.copies, self.d):
            return method(self, x, *rest, **some)
        members = some.get("members")
        count = self.m if members is None else len(members)
        for points in (x, rest[0]) if two else (x,):
            require_point(points, self.d, count)
        return rowwise(self, x, *rest, **some)

    return call


def one_by_one(
    name: str, method: Method, problem: Any, xs: np.ndarray, *rest: Any, members: Any = None
) -> Any:
    """What ``method``, called ``name``, gives for one worker after the other, each at its point."""
    members = np.arange(problem.m) if members is None else members
    points = [each(xs, len(members))]
    if name == "batch_changes":
        points, rest = [*points, each(rest[0], len(members))], rest[1:]
    losses = np.empty(len(members))
    rows = problem.arrays.zeros((len(members), problem.d), problem.dtype)
    for i, at in enumerate(zip(*points, strict=True)):
        if name in OF_SOME:
            batch = (numbers[i : i + 1] for numbers in rest)
            rows[i] = method(problem, *at, *batch, members=members[i : i + 1])[0]
            continue
        result = method(problem, *at, *rest)
        if name == "losses":
            losses[i] = result[i]
        elif name == "losses_and_gradients":
            losses[i], rows[i] = result[0][i], result[1][i]
        else:
            rows[i] = result[i]
    return {"losses": losses, "losses_and_gradients": (losses, rows)}.get(name, rows)


ROWS = (
    "losses",
    "gradients",
    "lazy_gradients",
    "losses_and_gradients",
    "batch_gradients",
    "batch_changes",
)
OF_SOME = "gradients", "lazy_gradients", "batch_gradients"
