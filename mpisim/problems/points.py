"""Points of a problem: one x for all workers, shape (d,), or a row for each of them.

Local steps, and messages down that differ, leave every worker at a point of its own. A method of a
problem that is written for one point is then called once for each worker, and gives its row.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np


def each(x: np.ndarray, count: int) -> Iterable[np.ndarray]:
    """The points of ``count`` workers, each (d,)."""
    return x if x.ndim == 2 else [x] * count


def accept_points(cls: type, native: bool) -> None:
    """Let the methods that ``cls`` defines take points, and refuse other shapes.

    native : they compute with a row for each worker themselves; otherwise they take (d,) only
    """
    for name, one_by_one in ONE_BY_ONE.items():
        method = vars(cls).get(name)
        if method is not None:
            setattr(cls, name, _accepting(name, method, method if native else one_by_one))


def _accepting(
    name: str, method: Callable[..., Any], rowwise: Callable[..., Any]
) -> Callable[..., Any]:
    """``method`` where all points are (d,), ``rowwise`` where a worker has a row of its own."""
    two = name in TWO_POINTS

    @functools.wraps(method)
    def call(self: Any, x: np.ndarray, *rest: Any) -> Any:
        if x.shape == (self.d,) and not (two and rest[0].shape != x.shape):
            return method(self, x, *rest)
        count = len(rest[0]) if name == "gradients_of" else self.m
        one = require_point(x, self.d, count)
        if two:
            one = require_point(rest[0], self.d, count) and one
        return (method if one else rowwise)(self, x, *rest)

    return call


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


# Each of these computes, with points in rows, what the method of this name does at one.


def _losses(problem: Any, xs: np.ndarray) -> np.ndarray:
    return np.array([problem.losses(x)[i] for i, x in enumerate(xs)], np.float64)


def _gradients(problem: Any, xs: np.ndarray) -> np.ndarray:
    return problem.gradients_of(xs, np.arange(problem.m))


def gradients_of_each(problem: Any, xs: np.ndarray, members: np.ndarray) -> np.ndarray:
    """The gradients (members, d) of some workers, each at its row of ``xs``."""
    rows = (problem.gradients_of(x, members[k : k + 1])[0] for k, x in enumerate(xs))
    return _stacked(problem, rows, len(members))


def _losses_and_gradients(problem: Any, xs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    parts = [problem.losses_and_gradients(x) for x in xs]
    losses = np.array([losses[i] for i, (losses, _) in enumerate(parts)], np.float64)
    rows = (gradients[i] for i, (_, gradients) in enumerate(parts))
    return losses, _stacked(problem, rows, problem.m)


def _batch_gradients(problem: Any, xs: np.ndarray, batch: np.ndarray) -> np.ndarray:
    rows = (problem.batch_gradients(x, batch)[i] for i, x in enumerate(xs))
    return _stacked(problem, rows, problem.m)


def _batch_changes(problem: Any, xs: np.ndarray, ys: np.ndarray, batch: np.ndarray) -> np.ndarray:
    pairs = zip(each(xs, problem.m), each(ys, problem.m), strict=True)
    rows = (problem.batch_changes(x, y, batch)[i] for i, (x, y) in enumerate(pairs))
    return _stacked(problem, rows, problem.m)


def _write_gradients(problem: Any, xs: np.ndarray, first: int, out: np.ndarray) -> None:
    for i in range(len(out)):
        problem.write_gradients(xs[first + i], first + i, out[i : i + 1])


def _subtract_gradients(
    problem: Any, xs: np.ndarray, first: int, less: np.ndarray, out: np.ndarray
) -> None:
    problem.write_gradients(xs, first, out)
    out -= less


def _coordinates(problem: Any, xs: np.ndarray, ptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
    values = np.empty(indices.size, problem.dtype)
    for i, x in enumerate(xs):
        these = slice(ptr[i], ptr[i + 1])
        alone = (np.arange(problem.m + 1) > i) * (ptr[i + 1] - ptr[i])
        values[these] = problem.coordinates(x, alone, indices[these])
    return values


def _coordinate_changes(
    problem: Any, xs: np.ndarray, ys: np.ndarray, ptr: np.ndarray, indices: np.ndarray
) -> np.ndarray:
    return problem.coordinates(xs, ptr, indices) - problem.coordinates(ys, ptr, indices)


def _no_search(problem: Any, xs: np.ndarray, less: np.ndarray, k: int) -> None:
    return None


def _stacked(problem: Any, rows: Iterable[Any], count: int) -> Any:
    """The rows (d,) in an array (count, d) of the problem's."""
    out = problem.arrays.zeros((count, problem.d), problem.dtype)
    for i, row in enumerate(rows):
        out[i] = row
    return out


TWO_POINTS = ("batch_changes", "coordinate_changes")
ONE_BY_ONE: dict[str, Callable[..., Any]] = {
    "losses": _losses,
    "gradients": _gradients,
    "gradients_of": gradients_of_each,
    "losses_and_gradients": _losses_and_gradients,
    "batch_gradients": _batch_gradients,
    "batch_changes": _batch_changes,
    "write_gradients": _write_gradients,
    "subtract_gradients": _subtract_gradients,
    "coordinates": _coordinates,
    "coordinate_changes": _coordinate_changes,
    "largest_differences": _no_search,
    "largest_innovations": _no_search,
}
