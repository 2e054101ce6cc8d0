"""The quadratic tasks against dense matrices, and EF21's search with bounds in them."""

import numpy as np
import pytest
from scipy.special import ndtri

from mpisim.compressors.permutation import labels as compressor_labels
from mpisim.core.numerics.select import FEW, largest
from mpisim.core.rng import Streams
from mpisim.problems import PROBLEMS
from mpisim.problems.quadratic_kernels import SPAN
from mpisim.runs.minimiser import minimiser
from mpisim.theory import smoothness
from tests.helpers import some_of
from tests.problems.support import LocalStar, constants_of

CASES = [(5, 12, 0.1), (7, 9, 0.8), (40, 6, 2.0), (3, 8, 0.0)]
CASES += [(1, 5, 0.8), (4, 1, 0.5), (2, 2, 0.1), (5, 6, [1.0, 3.0])]  # noise, or factors
LAMBDA, FLOATS = 0.01, ["float32", "float64"]
each = pytest.mark.parametrize(("n", "d", "s"), CASES)


def load(n, d, s, dtype=np.float64, lambda_=LAMBDA):
    noise = {"noise": 0.0, "factors": s} if isinstance(s, list) else {"noise": s}
    problem = PROBLEMS["quadratic"](dimension=d, lambda_=lambda_, **noise)
    return problem.loaded(n, 0, n, 3, np.dtype(dtype))


def algorithm_2(n, d, s, seed=3, lambda_=LAMBDA):
    """A (n, d, d) and b (n, d), as the paper has them; in Appendix M, A in one group, then B."""
    words = Streams(seed).raw("quadratic task", 0, 0, n, 2)
    xi = ndtri(((words >> np.uint64(11)) + 0.5) / 2**53)
    a, b = np.zeros((n, d, d)), np.zeros((n, d))
    for i in range(n):
        if isinstance(s, list):
            nu_s, nu_b = s[i >= n // 2], 0.0
        else:
            nu_s, nu_b = 1 + s * xi[i, 0], s * xi[i, 1]
        b[i, 0] = nu_s / 4 * (-1 + nu_b)
        for j in range(d):
            a[i, j, j] = nu_s / 4 * 2
            if j > 0:
                a[i, j, j - 1] = a[i, j - 1, j] = nu_s / 4 * -1
    least = np.linalg.eigvalsh(a.mean(axis=0))[0]
    return a + (lambda_ - least) * np.eye(d), b


@each
def test_losses_and_gradients(n, d, s):
    problem, (a, b) = load(n, d, s), algorithm_2(n, d, s)
    x = np.random.default_rng(0).standard_normal(d)
    losses, gradients = problem.losses_and_gradients(x)
    np.testing.assert_allclose(losses, 0.5 * (a @ x) @ x - b @ x, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(gradients, a @ x - b, rtol=1e-12, atol=1e-14)
    assert np.array_equal(problem.batch_gradients(x, np.zeros((n, 2), np.int64)), gradients)
    with pytest.raises(IndexError):
        problem.batch_gradients(x, np.ones((n, 1), np.int64))
    f, gradient = problem.loss_and_gradient(x)
    assert f == pytest.approx(losses.mean(), rel=1e-12, abs=1e-13)
    np.testing.assert_allclose(gradient, gradients.mean(axis=0), rtol=1e-11, atol=1e-14)
    assert np.array_equal(problem.initial_point(), np.sqrt(d) * np.eye(d)[0])


@each
def test_constants_and_minimum_are_those_of_the_matrices(n, d, s):
    problem, (a, b) = load(n, d, s), algorithm_2(n, d, s)
    c, published = (smoothness.constants(problem, LocalStar(n), *of) for of in ((), ("published",)))
    mean, values = a.mean(axis=0), np.linalg.eigvalsh(a)
    L_i, *others, L_pm = constants_of(a)
    np.testing.assert_allclose(c.L_i, L_i, rtol=1e-12)
    assert np.array_equal(problem.sample_norms(), c.L_i)
    assert [c.L, c.L_plus] == pytest.approx(others, rel=1e-12)
    assert c.L_pm**2 == pytest.approx(L_pm**2, rel=1e-9, abs=1e-15)
    assert np.linalg.eigvalsh(mean)[0] == pytest.approx(LAMBDA, rel=1e-9)
    assert problem.closed_form.mu_i == pytest.approx(values.min(), rel=1e-9, abs=1e-12)
    assert problem.convex == bool(values.min() >= 0)
    assert problem.identical == (s == 0.0 or n == 1)
    np.testing.assert_allclose(published.L_i, values.max(axis=1), rtol=1e-12)
    assert pytest.approx(values.max(axis=1).mean(), rel=1e-12) == published.L
    assert published.L_plus == published.L_pm and published.mu == c.mu == LAMBDA
    x, f = minimiser(problem, LocalStar(n), cache=False)
    np.testing.assert_allclose(x, np.linalg.solve(mean, b.mean(axis=0)), rtol=1e-8)
    assert f == pytest.approx(-0.5 * b.mean(axis=0) @ x, rel=1e-10)


@each
def test_matrices(n, d, s):
    problem, (a, _) = load(n, d, s), algorithm_2(n, d, s)
    at, largest = problem.hessian(problem.initial_point()), problem.largest_hessian()
    v = np.random.default_rng(1).standard_normal((n, d))
    for i in range(n):
        np.testing.assert_allclose(at.rows(i, 0, d), a[i], atol=1e-14)
        np.testing.assert_allclose(at.rows(i, d // 2, d), a[i, d // 2 :], atol=1e-14)
        m = largest.rows(i, 0, d)
        below = [np.linalg.eigvalsh(m + sign * a[i])[0] for sign in (-1, 1)]
        assert min(below) >= -1e-12 * np.abs(m).max()
        assert largest.norms()[i] == pytest.approx(np.linalg.norm(m, 2), rel=1e-12)
        np.testing.assert_allclose(largest.diagonals()[i], m.diagonal(), rtol=1e-15)
        np.testing.assert_allclose(largest.times(v)[i], m @ v[i], atol=1e-13)
        np.testing.assert_allclose(largest.times(v[0])[i], m @ v[0], atol=1e-13)
        bare = largest.without_shared().rows(i, 0, d) + largest.shared * np.eye(d)
        np.testing.assert_allclose(bare, m, atol=1e-14)


def test_the_groups_of_factors_are_those_of_the_compressor():
    """Within a group nothing differs."""
    problem, labels = load(5, 6, [1.0, 3.0]), np.array([0, 0, 1, 1, 1])
    assert np.array_equal(compressor_labels(2, 5), labels)
    assert problem.closed_form.L_pm > 0.1
    assert all(problem.closed_form_of(labels == k).L_pm < 1e-15 for k in (0, 1))


N, ROUNDS = 7, 60


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
    dtype, lazy = problem.dtype, problem.lazy_gradients(x)
    with np.errstate(all="ignore"):
        difference = problem.gradients(x) - state
        for k in {min(k, problem.d) for k in (1, 3, FEW, FEW + 1)}:
            search = lazy.largest_innovations if k == 1 else lazy.largest_less
            indices, values = search(state, k)
            assert np.array_equal(indices, largest(difference, k))
            assert values.tobytes() == np.take_along_axis(difference, indices, axis=1).tobytes()
        indices, values = lazy.largest_innovations(state, 1)
        sent = values.astype(wire).astype(dtype)  # what the wire leaves of them
        np.put_along_axis(state, indices, np.take_along_axis(state, indices, 1) + sent, 1)


KINDS = ["shrinking", "wild", "ties", "creeping"]
SIZES = [1, 2, SPAN, SPAN + 1, 10 * SPAN - 1]


@some_of(6, kind=KINDS, d=SIZES, dtype=FLOATS)
def test_the_same_as_without_bounds(d, kind, dtype):
    problem = load(N, d, 0.0 if kind == "ties" else 0.8, dtype, 0.1)
    random = np.random.default_rng(d)
    x, state = problem.initial_point(), np.zeros((N, d), dtype)
    for k, step in enumerate(steps(kind, d, dtype, random)):
        x = (x + step).astype(dtype)
        if k == 0 and kind == "creeping":
            state = problem.gradients(x)
        ef21_round(problem, x, state)


VALUES = [1e30, 5e37, 1e38, 2e38, 3.4e38, 1e39, 1e70, 1e150, 1e300, 1e308, np.inf, np.nan]


@some_of(12, value=VALUES, where=["x", "g_i", "b", "all"], dtype=FLOATS, wire=FLOATS)
def test_numbers_that_overflow_or_are_none(value, where, dtype, wire):
    """A few such numbers come among others, change a little, and go again."""
    random, d = np.random.default_rng(VALUES.index(value)), 5 * SPAN - 3
    problem = load(N, d, 0.8, dtype, 0.1)
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
    problem, x = load(N, 3 * SPAN, 0.8, "float32", 0.1), np.zeros(3 * SPAN, "float32")
    i, at = int(np.argmax(problem.t)), SPAN + 3
    x[at] = start
    while True:  # until float32 rounds worker i's gradient up there
        exact = problem.t[i] * (2 * float(x[at])) + problem.c * float(x[at])
        if np.float32(exact) > exact:
            break
        x[at] = np.nextafter(x[at], np.float32(2))
    state = problem.gradients(x)
    state[:, at + SPAN] = state[:, at]  # another one of the same size, which comes second
    problem.lazy_gradients(x).largest_innovations(state, 1)
    ef21_round(problem, np.zeros_like(x), state)


def test_a_round_at_a_point_for_each_worker_forgets_the_bounds():
    problem, x = load(N, 4 * SPAN, 0.8, "float64", 0.1), np.ones(4 * SPAN)
    state = problem.gradients(x) + 0.1 * np.random.default_rng(1).standard_normal((N, 4 * SPAN))
    state[:, 0] -= 3
    ef21_round(problem, x, state.copy())
    problem.lazy_gradients(x).largest_innovations(state, 1)
    ef21_round(problem, np.tile(x, (N, 1)), state)
    state[:, -1] += 5  # what that round sent
    ef21_round(problem, x, state)
