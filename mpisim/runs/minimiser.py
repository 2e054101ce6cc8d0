"""The minimiser of a convex f, to machine precision, for suboptimality and distance.

Newton's method. Up to `DENSE_LIMIT` dimensions a step forms the Hessian and solves with its
eigenvectors, without those that rounding cannot tell from the null space; so the iterates stay in
the span of the rows. Beyond, a step uses conjugate gradients. All ranks run the same lines on the
same numbers.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from mpisim.core.errors import InputError
from mpisim.core.files import image, try_write
from mpisim.core.home import cache_folder
from mpisim.core.numerics.eigen import eigh
from mpisim.core.numerics.lanes import dot
from mpisim.core.numerics.sums import norm, subtract_rows, times_vector
from mpisim.core.protocols import Collective, Matrices
from mpisim.core.registry import table_of
from mpisim.problems.base import Problem
from mpisim.runs.identity import code_of
from mpisim.theory.smoothness import from_first, mean, mean_matrix

DENSE_LIMIT = 1500
VISIBLE = 1e-13  # rounding hides smaller decreases of f, relative to f


def minimiser(problem: Problem, star: Collective, cache: bool = True) -> tuple[np.ndarray, float]:
    """x_star, shape (d,), float64, and f_star, the same bits on every rank; collective.

    Computed once for a problem and kept in the cache folder, unless there is a formula.
    `InputError` if f is not convex or has no minimiser (separable data without l2).
    """
    closed = problem.minimum()
    if closed is not None:
        return closed
    if not problem.convex:
        raise InputError(
            f"problem.name: {problem.name!r} is not convex, so run.reference cannot be true;"
            " it can for logistic and least-squares"
        )
    path = _path(problem)
    saved = _read(path, problem.d) if cache and star.first == 0 and star.m > 0 else None
    answer = from_first(star, np.zeros(problem.d + 2) if saved is None else saved)
    if answer[0] == 0:
        x, f = _newton(problem.double(), star)
        answer = from_first(star, np.concatenate([[1.0, f], x]))

        def fill(file: h5py.File) -> None:
            file["f"], file["x"] = answer[1], answer[2:]

        if cache and star.is_server:
            try_write(path, image(fill))
    return answer[2:].copy(), float(answer[1])


def _newton(problem: Problem, star: Collective) -> tuple[np.ndarray, float]:
    x = np.zeros(problem.d)
    f, g = _evaluate(problem, star, x)
    start = norm(g)
    step = np.zeros(problem.d)
    minimal = False  # whether x = 0 is a minimiser, up to rounding
    for _ in range(200):
        if not g.any():
            break
        H = problem.hessian(x)
        step = _solve(H, g, star)
        if not x.any() and 0 < dot(g, step) <= VISIBLE * abs(f):
            left = g - mean(star, H.times(step))  # without curvature: rounding, or f falls along it
            square = float(dot(left, left))
            minimal = square <= 1e-12 * start**2 or not (
                _evaluate(problem, star, -(f / square) * left)[0] < f - VISIBLE * abs(f)
            )
        better = _line_search(problem, star, x, f, g, step)
        if better is None:
            break  # only rounding is left
        x, f, g = better
    far = norm(g) > 1e-6 * start
    unbounded = norm(step) > 1e-3 * norm(x)
    failed = far or (unbounded and problem.attained != "everywhere")
    if start > 0 and failed and not minimal:
        raise InputError(
            f"run.reference: no minimiser was found for problem {problem.name!r} with"
            f" {problem.identity}; separable data has none without l2: set problem.l2 above 0"
        )
    return x, f


def _evaluate(problem: Problem, star: Collective, x: np.ndarray) -> tuple[float, np.ndarray]:
    """f(x) and its gradient, on every rank."""
    losses, gradients = problem.losses_and_gradients(x)
    both = mean(star, np.column_stack([losses, gradients]))
    return float(both[0]), both[1:]


def _line_search(
    problem: Problem, star: Collective, x: np.ndarray, f: float, g: np.ndarray, step: np.ndarray
) -> tuple[np.ndarray, float, np.ndarray] | None:
    """The first of x - step, x - step/2, ... that decreases f or, near the minimum, |grad f|."""
    decrease = float(dot(g, step))
    visible = VISIBLE * abs(f)
    t = 1.0
    while t > 1e-12:
        new = x - t * step
        f_new, g_new = _evaluate(problem, star, new)
        lower = f_new <= f - 1e-4 * t * decrease and decrease > visible
        if lower or (f_new <= f + visible and norm(g_new) < norm(g)):
            return new, f_new, g_new
        if decrease <= visible:
            return None
        t /= 2
    return None


def _solve(matrices: Matrices, g: np.ndarray, star: Collective) -> np.ndarray:
    """A solution p of H p = g, the smallest if there are several."""
    if len(g) <= DENSE_LIMIT:
        values, vectors = eigh(mean_matrix(star, matrices, len(g)))
        kept = values > len(g) * np.finfo(float).eps * values[-1]
        rows, p = vectors.T[kept], np.zeros_like(g)
        subtract_rows(p, times_vector(rows, g) / -values[kept], rows)
        return p
    p, residual = np.zeros_like(g), g.copy()
    direction, square = g.copy(), float(dot(g, g))
    stop = 1e-20 * square
    for _ in range(min(5000, 2 * len(g))):
        product = mean(star, matrices.times(direction))
        curvature = float(dot(direction, product))
        if not curvature > 0:
            break
        p += (square / curvature) * direction
        residual -= (square / curvature) * product
        last, square = square, float(dot(residual, residual))
        if square <= stop:
            break
        direction = residual + (square / last) * direction
    return p


def _path(problem: Problem) -> Path:
    """The cache file, named by the data's content, every option, and a plugin's code."""
    about: dict[str, Any] = {"data": problem.identity, "workers": problem.n, "seed": problem.seed}
    code = code_of([type(problem).__module__], [type(problem)])
    about["code"] = {n: text for n, text in code.items() if n.partition(".")[0] != "mpisim"}
    version = 3  # of the algorithm
    key = json.dumps([version, problem.d, table_of(problem) | about], sort_keys=True)
    name = hashlib.sha256(key.encode()).hexdigest()[:32]
    return cache_folder() / "minimisers" / f"{name}.h5"


def _read(path: Path, d: int) -> np.ndarray | None:
    """(1, f, x), shape (d + 2,), from the cache file; None if there is no sound one."""
    try:
        with h5py.File(path, "r") as file:
            numbers = np.concatenate([[1.0, file["f"][()]], file["x"][:]])
    except (OSError, KeyError, ValueError, RuntimeError):
        return None
    return numbers if numbers.shape == (d + 2,) and np.isfinite(numbers).all() else None
