"""What every problem must do, checked in one process.

Each check takes a loaded problem and raises `Broken`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from mpisim.core.arrays import HOST, is_tensor, to_host
from mpisim.core.errors import InputError
from mpisim.problems.base import Problem
from mpisim.problems.explicit import ExplicitProblem
from mpisim.testing.runs import Broken, Check, NotChecked, demand, demand_same
from mpisim.theory.smoothness import closed_form

N = 5  # workers
SEED = 1
STEP = 1e-5  # of differences
TOLERANCE = 1e-4  # of a slope, relative to the gradient
BATCH_TOLERANCE = 1e-6  # of the mean over all samples
MOST_ROWS = 2000  # of a worker whose samples are all taken
SPLITS = ([(0, 2), (2, 3)], [(0, 1), (1, 0), (1, 4)])  # (first, count) of blocks
DISTANCES = (1e-3, 1.0, 30.0)
POWERS = 8  # steps to a steeper direction


def problem_checks(spec: Problem) -> list[Check]:
    """The checks of a problem that is not loaded yet."""

    def loaded(check: Callable[[Any], None]) -> Callable[[], None]:
        return lambda: check(load(spec, 0, N))

    return [
        Check("losses and gradients have their shapes and types", loaded(shapes)),
        Check("gradients are the slopes of the losses (differences)", loaded(slopes)),
        Check("all samples of a worker give its gradient", lambda: full_batch(load(spec, 1, 1))),
        Check("a worker's losses and gradients are the same on any rank", lambda: alike(spec)),
        Check("results are the caller's: no later call changes them", loaded(kept)),
        Check("parts of the gradients are those of the whole", loaded(parts)),
        Check("|grad f_i(x) - grad f_i(y)| <= L_i |x - y|", loaded(smooth)),
        Check("what it says of f holds (convex, nonnegative, minimum)", loaded(promises)),
    ]


class _OnHost:
    """A problem that takes and gives NumPy arrays in place of tensors."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._problem, name)
        return (lambda *args, **keys: _numpy(value(*args, **keys))) if callable(value) else value


def _numpy(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_numpy, value))
    return to_host(value) if is_tensor(value) else value


def load(spec: Problem, first: int, count: int) -> Any:
    """Workers first, ... of `N`, in float64."""
    n = spec.workers or N
    problem = spec.loaded(n, first, count, SEED, np.dtype(float))
    return problem if problem.arrays is HOST else _OnHost(problem)


def points(problem: Problem, count: int = 3) -> list[np.ndarray]:
    """x^0, and points around it, each (d,)."""
    rng, start = np.random.default_rng(5), problem.initial_point().astype(float)
    return [start, *(start + rng.standard_normal(problem.d) * 0.3 for _ in range(count - 1))]


def shapes(problem: Problem) -> None:
    """Losses (m,), gradients (m, d), both float64 here, the same alone and together."""
    m, d = problem.m, problem.d
    for name, shape, right in (
        ("rows", np.shape(problem.rows), (m,)),
        ("initial_point()", np.shape(problem.initial_point()), (d,)),
    ):
        demand(shape == right, f"{name} has shape {shape}, not {right}")
    for x in points(problem):
        losses, gradients = problem.losses_and_gradients(x)
        for name, one, other, shape in (
            ("losses", losses, problem.losses(x), (m,)),
            ("gradients", gradients, problem.gradients(x), (m, d)),
        ):
            fits = np.shape(one) == shape and one.dtype == np.float64
            demand(fits, f"{name} are {one.dtype} {np.shape(one)}, not float64 {shape}")
            demand_same(one, np.asarray(other), f"{name}(x) and losses_and_gradients(x) differ")


def slopes(problem: Problem) -> None:
    """Differences along the mean gradient and random directions; a kink's slope is between two."""
    rng = np.random.default_rng(6)
    for x in points(problem):
        losses, gradients = problem.losses(x), problem.gradients(x)
        size = np.linalg.norm(gradients, axis=1)
        directions = [gradients.mean(axis=0), *rng.standard_normal((3, problem.d))]
        for u in (u / np.linalg.norm(u) for u in directions if u.any()):
            step = STEP * max(1.0, float(np.linalg.norm(x)))
            ahead, behind = problem.losses(x + step * u), problem.losses(x - step * u)
            rise, slope = (ahead - behind) / (2 * step), gradients @ u
            bend = np.abs(ahead - 2 * losses + behind) / (2 * step)
            slack = TOLERANCE * size + 1e-10 * np.maximum(np.abs(ahead), 1) / step
            for i in np.flatnonzero(~(np.abs(rise - slope) <= slack + bend)):
                says = f"its gradient says {slope[i]:.6g}"
                raise Broken(f"worker {i}: f_i rises by {rise[i]:.6g}, {says}")


def full_batch(problem: Problem) -> None:
    """One worker's `batch_gradients` of all its samples, at once, in two halves, some twice."""
    rows = int(problem.rows[0])
    if rows > MOST_ROWS:
        raise NotChecked(f"a worker has {rows} samples")
    if not problem.finite_sum:
        raise NotChecked("its minibatches are no means over samples")
    samples = np.arange(rows)[None]
    for x in points(problem):
        gradient = problem.gradients(x)
        near = BATCH_TOLERANCE * max(float(np.abs(gradient).max(initial=0)), 1e-8)
        halves = [half for half in np.split(samples, [rows // 2], axis=1) if half.size]
        sums = [half.size * problem.batch_gradients(x, half) for half in halves]
        some = np.concatenate([samples, halves[0]], axis=1)
        twice = (some.size * problem.batch_gradients(x, some) - sums[0]) / rows
        means = {
            "a batch": problem.batch_gradients(x, samples),
            "two batches": np.add.reduce(sums) / rows,
            "a batch with half twice, without these,": twice,
        }
        for name, mean in means.items():
            what, shape = f"{name} of all samples", gradient.shape
            demand(mean.shape == shape, f"{what} has shape {mean.shape}, not {shape}")
            worst = np.abs(mean - gradient).max(initial=0)
            size = f"the gradient {gradient.max(initial=0):.3g}"
            demand(worst <= near, f"{what} is {worst:.3g} off, {size}")


def alike(spec: Problem) -> None:
    """A worker's results do not depend on the other workers of its rank."""
    together = load(spec, 0, N)
    for split in SPLITS:
        blocks = [load(spec, first, count) for first, count in split]
        where = f"blocks of {', '.join(str(count) for _, count in split)} workers"
        for name in ("identity", "closed_form"):
            values = {repr(getattr(block, name)) for block in [together, *blocks]}
            demand(len(values) == 1, f"{where}: {name} differs")
        starts = {points(block, 1)[0].tobytes() for block in [together, *blocks]}
        demand(len(starts) == 1, f"{where}: initial_point() differs")
        for x in points(together):
            of_blocks = [_results(block, x) for block in blocks]
            for name, one in _results(together, x).items():
                several = np.concatenate([results[name] for results in of_blocks])
                demand_same(one, several, f"{where}: other {name} than in one block")


def _results(problem: Problem, x: np.ndarray) -> dict[str, np.ndarray]:
    """What a block has at x; of worker i the samples i, i + 1, ... of a batch, in a circle."""
    losses, gradients = problem.losses_and_gradients(x)
    batch = np.arange(problem.first, problem.first + problem.m)[:, None] + np.arange(3)
    batches = problem.batch_gradients(x, batch % problem.rows[:, None])
    return {"losses": losses, "gradients": gradients, "batch_gradients": batches}


def kept(problem: Problem) -> None:
    """Arrays that were returned stay as they are."""
    x, y, *_ = points(problem)
    results = problem.losses_and_gradients(x)
    before = [result.tobytes() for result in results]
    problem.losses_and_gradients(y)
    problem.batch_gradients(y, np.zeros((problem.m, 2), np.int64))
    demand([result.tobytes() for result in results] == before, "a later call changes them")


def parts(problem: Problem) -> None:
    """What some workers have, and all with a point for each; coordinates, where there are any."""
    members = np.arange(0, problem.m, 2)
    batch = np.arange(2 * problem.m).reshape(-1, 2) % problem.rows[:, None]
    each_x = np.array(points(problem, problem.m)).reshape(-1, problem.d)
    for name, given in (("losses", ()), ("gradients", ()), ("batch_gradients", (batch,))):
        method = getattr(problem, name)
        rows = [method(x, *given)[i] for i, x in enumerate(each_x)]
        why = f"{name} at a point of each worker differ from those at one for all"
        demand_same(method(each_x, *given), np.array(rows), why)
    for x in points(problem):
        gradients = problem.gradients(x)
        some = problem.gradients(x, members=members)
        why = "of some members differ from those of all"
        demand_same(some, gradients[members], f"gradients {why}")
        some = problem.batch_gradients(x, batch[members], members=members)
        demand_same(some, problem.batch_gradients(x, batch)[members], f"batch_gradients {why}")
        if isinstance(problem, ExplicitProblem):
            row = np.arange(problem.d)[:: max(1, problem.d // 5)]
            ptr = np.arange(problem.m + 1) * row.size
            coordinates = problem.lazy_gradients(x).take(ptr, np.tile(row, problem.m))
            demand_same(coordinates, gradients[:, row], "coordinates differ from gradients")
            lazy = problem.lazy_gradients(x, members=members)
            some = lazy if isinstance(lazy, np.ndarray) else lazy.dense()
            demand_same(some, gradients[members], f"lazy_gradients {why}")


def smooth(problem: Problem) -> None:
    """Gradients change no faster than the L_i allow, over pairs of points; L, L_+, L_± and mu.

    From a random direction, those of the changes lead to where f and each f_i are steepest, as in
    the power method.
    """
    constants = closed_form(problem)
    try:
        block = slice(problem.first, problem.first + problem.m)
        L_i = constants.L_i[block] if constants is not None else problem.largest_hessian().norms()
    except InputError:
        raise NotChecked("it says no L_i") from None
    rng = np.random.default_rng(7)
    for x, distance, of_f in product(points(problem), DISTANCES, (True, False)):
        u = np.tile(rng.standard_normal(problem.d), (problem.m, 1))
        for _ in range(POWERS):
            y = x + distance * u / np.linalg.norm(u, axis=1, keepdims=True)
            apart = np.linalg.norm(x - y, axis=1, keepdims=True)
            changes = (problem.gradients(x) - problem.gradients(y)) / apart
            ratios, mean = np.linalg.norm(changes, axis=1), changes.mean(axis=0)
            for i in np.flatnonzero(~(ratios <= L_i * (1 + 1e-6) + 1e-9)):
                ratio = f"{ratios[i]:.6g} |x - y| between two points"
                raise Broken(f"worker {i}: {ratio}, L_i = {L_i[i]:.6g}")
            u = np.tile(mean, (problem.m, 1)) if of_f else changes
            u = u + 1e-9 * rng.standard_normal(problem.d)  # it may be 0
            if not of_f or constants is None or problem.m < problem.n:
                continue
            for name, sign, measured in (
                ("L", 1, np.linalg.norm(mean)),
                ("L_plus", 1, np.sqrt((ratios**2).mean())),
                ("L_pm", 1, np.linalg.norm(changes - mean) / np.sqrt(problem.m)),
                ("mu", -1, mean @ (x - y[0]) / apart[0, 0]),
            ):
                constant = getattr(constants, name)
                fits = sign * (measured - constant) <= 1e-6 * abs(constant) + 1e-9
                demand(fits, f"{name} = {constant:.6g}, but two points have {measured:.6g}")


def promises(problem: Problem) -> None:
    """f_i is convex and f nonnegative, and f(x*) its minimum, if the problem says so."""
    closed = problem.minimum() if problem.m == problem.n else None
    if not (problem.convex or problem.nonnegative or closed):
        raise NotChecked("it says nothing")
    x, *others = points(problem, 6)
    if closed:
        g, scale = problem.gradients(closed[0]).mean(axis=0), np.abs(problem.gradients(x)).sum()
        size, f = np.linalg.norm(g), problem.losses(closed[0]).mean()
        demand(size <= 1e-6 * scale + 1e-9, f"minimum(): |grad f(x*)| is {size:.3g}")
        why = f"minimum(): f(x*) is {f:.6g}, it says {closed[1]:.6g}"
        demand(abs(f - closed[1]) <= 1e-6 * abs(f) + 1e-9, why)
    for y in others:
        rise = ((problem.gradients(x) - problem.gradients(y)) * (x - y)).sum(axis=1)
        scale = np.abs(problem.gradients(x)).sum() + 1
        concave = problem.convex and (rise < -1e-9 * scale).any()
        where = "between two points"
        demand(not concave, f"worker {int(rise.argmin())}: f_i is not convex {where}")
        f, bounded = problem.losses(y).mean(), problem.nonnegative and problem.m == problem.n
        demand(not (bounded and f < 0), f"f is {f:.6g} at a point")
