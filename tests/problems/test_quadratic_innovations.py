"""EF21's search with bounds finds what a search without them finds, to the bit."""

from __future__ import annotations

import numpy as np
import pytest

from mpisim.core.select import largest
from mpisim.problems.base import PROBLEMS
from mpisim.problems.quadratic_innovations import BLOCK

N, ROUNDS = 7, 60


def task(d, noise, dtype):
    problem = PROBLEMS["quadratic"](dimension=d, noise=noise, lambda_=0.1)
    return problem.loaded(N, 0, N, 3, np.dtype(dtype))


def steps(kind, d, dtype, random):
    """What is added to x in each round.

    As a method does, far, to equal entries and back, or so little that only roundings change.
    """
    rounding = 1000 * np.finfo(dtype).eps
    if kind == "creeping":
        yield 1000 * random.standard_normal(d) * (np.arange(d) % 2)
    for k in range(ROUNDS):
        if kind == "shrinking":
            yield random.standard_normal(d) * 0.8**k
        elif kind == "wild":
            yield random.standard_normal(d) * 10.0 ** random.integers(-9, 9)
        elif kind == "creeping":
            yield rounding / 10 * random.standard_normal(d) * (np.arange(d) % 2 == 0)
        else:
            yield np.where(random.random(d) < 0.1, random.integers(-1, 2, d), 0.0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["shrinking", "wild", "ties", "creeping"])
@pytest.mark.parametrize("d", [1, 2, BLOCK, BLOCK + 1, 10 * BLOCK - 1])
def test_the_same_as_without_bounds(d, kind, dtype):
    problem = task(d, 0.0 if kind == "ties" else 0.8, dtype)
    random = np.random.default_rng(d)
    x, state = problem.initial_point(), np.zeros((N, d), dtype)
    for k, step in enumerate(steps(kind, d, dtype, random)):
        x = (x + step).astype(dtype)
        if k == 0 and kind == "creeping":
            state = problem.gradients(x)
        indices, values = problem.largest_innovations(x, state, 1)
        difference = problem.gradients(x) - state
        assert np.array_equal(indices, largest(difference, 1)), k
        assert values.tobytes() == np.take_along_axis(difference, indices, axis=1).tobytes()
        sent = values.astype(np.float32).astype(dtype)  # what the wire leaves of them
        np.put_along_axis(state, indices, np.take_along_axis(state, indices, 1) + sent, 1)


def test_numbers_that_overflow_or_are_none():
    """Such entries have no bound: they are looked at again in every round."""
    d = 3 * BLOCK
    problem = task(d, 0.8, "float64")
    x, state = problem.initial_point(), np.zeros((N, d))
    changes = [(d // 2, 1e60), (0, 1e70), (0, np.inf), (d - 1, np.nan), (d - 1, 0.0), (0, 0.0)]
    for j, value in changes:
        x = x.copy()
        x[j] = value
        with np.errstate(all="ignore"):
            difference = problem.gradients(x) - state
            indices, values = problem.largest_innovations(x, state, 1)
            assert np.array_equal(indices, largest(difference, 1)), (j, value)
            assert np.array_equal(values[:, 0], difference[range(N), indices[:, 0]], equal_nan=True)
            state[range(N), indices[:, 0]] += values[:, 0].astype(np.float32)


def test_another_array_has_no_bounds_yet():
    problem, x = task(200, 0.8, "float64"), np.ones(200)
    problem.largest_innovations(x, problem.gradients(x), 1)
    state = np.random.default_rng(1).standard_normal((N, 200))
    indices, _ = problem.largest_innovations(x, state, 1)
    assert np.array_equal(indices, largest(problem.gradients(x) - state, 1))


def test_several_entries_are_searched_without_bounds():
    problem, x = task(200, 0.8, "float64"), np.ones(200)
    assert problem.largest_innovations(x, np.zeros((N, 200)), 2) is None
