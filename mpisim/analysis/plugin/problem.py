"""What every problem must do, checked in one process."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from mpisim.analysis.plugin.outcome import Check, NotChecked
from mpisim.core.arrays import EVALUATION, HOST, to_host
from mpisim.core.errors import InputError
from mpisim.problems.base import ExplicitProblem, Problem

N = 5  # workers
SEED = 1
STEP = 1e-5  # of differences
TOLERANCE = 1e-4  # of a slope, relative to the gradient
BATCH_TOLERANCE = 1e-6  # of the mean over all samples
MOST_ROWS = 2000  # of a worker whose samples are all taken
SPLITS = ([(0, 2), (2, 3)], [(0, 1), (1, 0), (1, 4)])  # (first, count) of blocks
GIVES_VECTORS = (
    "initial_point",
    "losses_and_gradients",
    "gradients",
    "gradients_of",
    "batch_gradients",
)
DISTANCES = (1e-3, 1.0, 30.0)


def checks(spec: Problem) -> Iterator[Check]:
    """The checks of a problem that is not loaded yet."""

    def loaded() -> Problem:
        return load(spec, 0, N)

    yield "losses and gradients have their shapes and types", lambda: shapes(loaded())
    yield "gradients are the slopes of the losses (differences)", lambda: slopes(loaded())
    yield "all samples of a worker give its gradient", lambda: whole_batch(load(spec, 1, 1))
    yield "a worker's losses and gradients are the same on any rank", lambda: alike(spec)
    yield "results are the caller's: no later call changes them", lambda: kept(loaded())
    yield "parts of the gradients are those of the whole", lambda: parts(loaded())
    yield "|grad f_i(x) - grad f_i(y)| <= L_i |x - y|", lambda: smooth(loaded())
    yield "what it says of f holds (convex, nonnegative)", lambda: promises(loaded())


def load(spec: Problem, first: int, count: int) -> Problem:
    """Workers first, ... of `N`, in float64; what tensors it gives come as NumPy arrays."""
    n = getattr(spec, "workers", None) or N
    problem = spec.loaded(n, first, count, SEED, np.dtype(float))
    if problem.arrays is not HOST:
        for name in GIVES_VECTORS:
            setattr(problem, name, _on_host(getattr(problem, name)))
    return problem


def _on_host(method: Callable) -> Callable:
    def call(*arguments):
        found = method(*arguments)
        if isinstance(found, tuple):
            return tuple(to_host(one, EVALUATION) for one in found)
        return to_host(found, EVALUATION)

    return call


def points(problem: Problem, count: int = 3) -> list[np.ndarray]:
    """x^0, and points around it."""
    rng, start = np.random.default_rng(5), problem.initial_point().astype(float)
    return [start, *(start + rng.standard_normal(problem.d) * 0.3 for _ in range(count - 1))]


def shapes(problem: Problem) -> str:
    """Losses (m,), gradients (m, d), both float64 here, the same alone and together."""
    m, d = problem.m, problem.d
    if np.shape(problem.rows) != (m,):
        return f"rows has shape {np.shape(problem.rows)}, not ({m},)"
    if np.shape(problem.initial_point()) != (d,):
        return f"initial_point() has shape {np.shape(problem.initial_point())}, not ({d},)"
    for x in points(problem):
        both = problem.losses_and_gradients(x)
        alone = problem.losses(x), problem.gradients(x)
        for name, one, other, shape in zip(
            ("losses", "gradients"), both, alone, ((m,), (m, d)), strict=True
        ):
            if np.shape(one) != shape or one.dtype != np.float64:
                return f"{name} are {one.dtype} {np.shape(one)}, not float64 {shape}"
            if one.tobytes() != np.asarray(other).tobytes():
                return f"{name}(x) and losses_and_gradients(x) differ"
    return ""


def slopes(problem: Problem) -> str:
    """Central differences along the mean gradient and random directions."""
    rng = np.random.default_rng(6)
    for x in points(problem):
        gradients = problem.gradients(x)
        size = np.linalg.norm(gradients, axis=1)
        directions = [gradients.mean(axis=0), *rng.standard_normal((3, problem.d))]
        for u in (u / np.linalg.norm(u) for u in directions if u.any()):
            step = STEP * max(1.0, float(np.linalg.norm(x)))
            ahead, behind = problem.losses(x + step * u), problem.losses(x - step * u)
            found, said = (ahead - behind) / (2 * step), gradients @ u
            slack = TOLERANCE * size + 1e-10 * np.maximum(np.abs(ahead), 1) / step
            for i in np.flatnonzero(~(np.abs(found - said) <= slack)):
                return f"worker {i}: f_i rises by {found[i]:.6g}, its gradient says {said[i]:.6g}"
    return ""


def whole_batch(problem: Problem) -> str:
    """One worker's `batch_gradients` of all its samples, at once and in two halves."""
    rows = int(problem.rows[0])
    if rows > MOST_ROWS:
        raise NotChecked(f"a worker has {rows} samples")
    samples = np.arange(rows)[None]
    for x in points(problem):
        whole = problem.gradients(x)
        near = BATCH_TOLERANCE * max(float(np.abs(whole).max(initial=0)), 1e-8)
        cuts = [samples[:, : rows // 2], samples[:, rows // 2 :]]
        halves = [half for half in cuts if half.size]
        parts = [half.size * problem.batch_gradients(x, half) for half in halves]
        mean = np.add.reduce(parts) / rows
        for name, found in (
            ("a batch", problem.batch_gradients(x, samples)),
            ("two batches", mean),
        ):
            if found.shape != whole.shape:
                return f"{name} of all samples has shape {found.shape}, not {whole.shape}"
            if not np.abs(found - whole).max(initial=0) <= near:
                worst = np.abs(found - whole).max()
                return f"{name} of all samples is {worst:.3g} off, the gradient {whole.max():.3g}"
    return ""


def alike(spec: Problem) -> str:
    """Whether a worker's results depend on the other workers of its rank."""
    whole = load(spec, 0, N)
    for split in SPLITS:
        blocks = [load(spec, first, count) for first, count in split]
        sizes = ", ".join(str(count) for _, count in split)
        if len({block.identity for block in [whole, *blocks]}) > 1:
            return f"blocks of {sizes} workers: identity differs"
        for x in points(whole):
            found = [block.losses_and_gradients(x) for block in blocks]
            pairs = zip(whole.losses_and_gradients(x), zip(*found, strict=True), strict=True)
            for name, (one, several) in zip(("losses", "gradients"), pairs, strict=True):
                if one.tobytes() != np.concatenate(several).tobytes():
                    return f"blocks of {sizes} workers: other {name} than in one block"
    return ""


def kept(problem: Problem) -> str:
    """Whether arrays that were returned stay as they are."""
    x, y, *_ = points(problem)
    losses, gradients = problem.losses_and_gradients(x)
    before = losses.copy(), gradients.copy()
    problem.losses_and_gradients(y)
    problem.batch_gradients(y, np.zeros((problem.m, 1), np.int64))
    if not (np.array_equal(losses, before[0]) and np.array_equal(gradients, before[1])):
        return "a later call changes them"
    return ""


def parts(problem: Problem) -> str:
    """`gradients_of` some workers and, where the problem has them, single coordinates."""
    members = np.arange(0, problem.m, 2)
    for x in points(problem):
        whole = problem.gradients(x)
        if problem.gradients_of(x, members).tobytes() != whole[members].tobytes():
            return "gradients_of differs from gradients"
        if isinstance(problem, ExplicitProblem):
            row = np.arange(problem.d)[:: max(1, problem.d // 5)]
            ptr = np.arange(problem.m + 1) * row.size
            found = problem.coordinates(x, ptr, np.tile(row, problem.m))
            if found.tobytes() != whole[:, row].tobytes():
                return "coordinates differ from gradients"
    return ""


def smooth(problem: Problem) -> str:
    """Whether gradients change as fast as the L_i allow, over pairs of points."""
    known = problem.known
    try:
        mine = slice(problem.first, problem.first + problem.m)
        L_i = known.L_i[mine] if known is not None else problem.largest_hessian().norms()
    except InputError:
        raise NotChecked("it says no L_i") from None
    rng = np.random.default_rng(7)
    for x in points(problem):
        for distance in DISTANCES:
            u = rng.standard_normal(problem.d)
            y = x + distance * u / np.linalg.norm(u)
            change = np.linalg.norm(problem.gradients(x) - problem.gradients(y), axis=1)
            ratios = change / np.linalg.norm(x - y)
            for i in np.flatnonzero(~(ratios <= L_i * (1 + 1e-6) + 1e-9)):
                return f"worker {i}: {ratios[i]:.6g} |x - y| between two points, L_i = {L_i[i]:.6g}"
    return ""


def promises(problem: Problem) -> str:
    """Whether f_i is convex and f nonnegative, if the problem says so."""
    if not (problem.convex or problem.nonnegative):
        raise NotChecked("it says neither")
    x, *others = points(problem, 6)
    for y in others:
        rise = ((problem.gradients(x) - problem.gradients(y)) * (x - y)).sum(axis=1)
        scale = np.abs(problem.gradients(x)).sum() + 1
        if problem.convex and (rise < -1e-9 * scale).any():
            return f"worker {int(rise.argmin())}: f_i is not convex between two points"
        if problem.nonnegative and problem.m == problem.n and problem.losses(y).mean() < 0:
            return f"f is {problem.losses(y).mean():.6g} at a point"
    return ""
