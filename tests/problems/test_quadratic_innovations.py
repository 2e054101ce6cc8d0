"""EF21's search with bounds finds what a search without them finds, to the bit."""

import numpy as np
import pytest

from mpisim.core.numerics.select import largest
from mpisim.problems.base import PROBLEMS
from mpisim.problems.quadratic_kernels import SPAN as BLOCK

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


def ef21_round(problem, x, state, wire="float32"):
    """What the search finds is what there is, NaN included; then ``state`` receives it."""
    dtype = problem.dtype
    with np.errstate(all="ignore"):
        indices, values = problem.largest_innovations(x, state, 1)
        difference = problem.gradients(x) - state
        assert np.array_equal(indices, largest(difference, 1))
        assert values.tobytes() == np.take_along_axis(difference, indices, axis=1).tobytes()
        sent = values.astype(wire).astype(dtype)  # what the wire leaves of them
        np.put_along_axis(state, indices, np.take_along_axis(state, indices, 1) + sent, 1)


@pytest.mark.drawn(12)
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
        ef21_round(problem, x, state)


SIZES = [1e30, 5e37, 1e38, 2e38, 3.4e38, 1e39, 1e70, 1e150, 1e300, 1e308, np.inf, np.nan]


@pytest.mark.drawn(12)
@pytest.mark.parametrize("wire", ["float32", "float64"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("where", ["x", "g_i", "b", "all"])
@pytest.mark.parametrize("value", SIZES)
def test_numbers_that_overflow_or_are_none(value, where, dtype, wire):
    """A few such numbers come among others, change a little, and go again."""
    random, d = np.random.default_rng(SIZES.index(value)), 5 * BLOCK - 3
    problem = task(d, 0.8, dtype)
    x, state = problem.initial_point(), random.standard_normal((N, d)).astype(dtype)
    here = {where} if where != "all" else {"x", "g_i", "b"}

    def some(shape):
        near = value * random.choice([1, -1, 0.7, -0.2, 1e-3], shape)
        return np.where(random.random(shape) < 4 / shape[-1], near, random.standard_normal(shape))

    with np.errstate(all="ignore"):
        if "g_i" in here:
            state = some((N, d)).astype(dtype)
        if "b" in here:
            problem.b[:] = some((N,))
        for k in range(12):
            if k in (3, 4, 8) and "x" in here:
                x = some((d,)).astype(dtype)
            if k in (6, 10):
                x = problem.initial_point()
            ef21_round(problem, x, state, wire)
            x = (x * (1 + random.standard_normal(d) / 100)).astype(dtype)


@pytest.mark.parametrize("start", [1.0, 1e-44])  # with relative roundings, and with absolute ones
def test_a_number_that_goes_leaves_its_roundings(start):
    """g_i may exceed the gradient by a rounding, and that is left of it when the gradient goes."""
    problem, x = task(3 * BLOCK, 0.8, "float32"), np.zeros(3 * BLOCK, "float32")
    i, at = int(np.argmax(problem.t)), BLOCK + 3
    x[at] = start
    while True:  # until float32 rounds worker i's gradient up there
        exact = problem.t[i] * (2 * float(x[at])) + problem.c * float(x[at])
        if np.float32(exact) > exact:
            break
        x[at] = np.nextafter(x[at], np.float32(2))
    state = problem.gradients(x)
    state[:, at + BLOCK] = state[:, at]  # another one of the same size, which comes second
    problem.largest_innovations(x, state, 1)
    ef21_round(problem, np.zeros_like(x), state)


def test_a_round_at_a_point_for_each_worker_forgets_the_bounds():
    problem, x = task(4 * BLOCK, 0.8, "float64"), np.ones(4 * BLOCK)
    state = problem.gradients(x) + 0.1 * np.random.default_rng(1).standard_normal((N, 4 * BLOCK))
    state[:, 0] -= 3
    ef21_round(problem, x, state.copy())
    problem.largest_innovations(x, state, 1)
    assert problem.largest_innovations(np.tile(x, (N, 1)), state, 1) is None
    state[:, -1] += 5  # what that round sent
    ef21_round(problem, x, state)
