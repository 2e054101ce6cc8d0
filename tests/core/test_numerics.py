"""Sums, eigenvectors, functions, the k largest and draws, against NumPy, SciPy and definitions."""

import numpy as np
import pytest
from numba import TypingError, njit
from scipy import stats
from scipy.special import ndtri

from mpisim.core.errors import InputError
from mpisim.core.numerics.eigen import eigh, eigvalsh, largest_eigenvalue
from mpisim.core.numerics.functions import log, normal_quantiles
from mpisim.core.numerics.lanes import dot, load, reduce, sum_of
from mpisim.core.numerics.select import BLOCK, FEW, largest
from mpisim.core.numerics.sums import add_gram, inner_products, product, subtract_rows, times_vector
from mpisim.core.rng import Draw, Streams, purpose_key
from mpisim.problems.loss_kernels import LOGISTIC, LOSS, phi, sigmoid
from tests.helpers import some_of

SIZES = [0, 1, 7, 8, 9, 16, 21, 100]
RNG = np.random.default_rng(1)


def in_lanes(terms):
    """The sum in the order that `mpisim.core.numerics.lanes` states."""
    full = terms.size // 8 * 8
    lanes = np.zeros(8, terms.dtype)
    for part in terms[:full].reshape(-1, 8):
        lanes = lanes + part
    while lanes.size > 1:
        lanes = lanes[: lanes.size // 2] + lanes[lanes.size // 2 :]
    rest = terms.dtype.type(0)
    for term in terms[full:]:
        rest = rest + term
    return lanes[0] + rest


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("size", SIZES)
def test_sums_have_the_stated_order(size, dtype):
    a, b = RNG.normal(size=(2, size)).astype(dtype)
    assert dot(a, b) == in_lanes(a * b)
    assert sum_of(np.append(a, a), size) == in_lanes(a)


def test_lanes_need_contiguous_arrays():
    @njit
    def first(v):
        return reduce(load(v, 0))

    assert first(np.ones(8)) == 8
    with pytest.raises(TypingError, match="contiguous"):
        first(np.ones(16)[::2])


@pytest.mark.parametrize("rows", [1, 3, 4, 9])
def test_products(rows):
    a, weights, v = RNG.normal(size=(rows, 21)), RNG.random(rows), RNG.normal(size=21)
    out = np.zeros((5, 21))
    add_gram(a, weights, 3, out)
    close = np.testing.assert_allclose
    close(out, ((a.T * weights) @ a)[3:8], atol=1e-13)
    close(inner_products(a), a @ a.T, atol=1e-13)
    close(product(a, np.ascontiguousarray(a.T)), a @ a.T, atol=1e-13)
    close(times_vector(a, v), a @ v, atol=1e-13)
    expected = v - a.T @ weights
    subtract_rows(v, weights, a)
    close(v, expected, atol=1e-13)


def _low_rank(d):
    b = RNG.normal(size=(d, max(1, d // 3)))
    return b @ b.T


MATRICES = {
    "any": lambda d: (lambda a: a + a.T)(RNG.normal(size=(d, d))),
    "low rank": _low_rank,
    "low rank and a multiple of I": lambda d: _low_rank(d) + 1e-3 * np.eye(d),
    "zero": lambda d: np.zeros((d, d)),
    "tiny": lambda d: np.full((d, d), 1e-200),
    "huge": lambda d: np.full((d, d), 1e200),
    "graded": lambda d: np.diag(10.0 ** -np.arange(d)) + 1e-20,
    "Wilkinson": lambda d: (
        np.diag(np.abs(np.arange(d) - d // 2) + 0.0) + np.eye(d, k=1) + np.eye(d, k=-1)
    ),
}


@some_of(12, kind=MATRICES, d=[1, 2, 3, 8, 21, 60])
def test_eigenvectors(kind, d):
    matrix = MATRICES[kind](d)
    values, vectors = eigh(matrix)
    size = d * max(np.abs(matrix).max(), 1e-300)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix), atol=1e-14 * size)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(d), atol=1e-14 * d)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-14 * size)
    assert (np.diff(values) >= 0).all() and (eigvalsh(matrix) == values).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_eigenvectors_of_what_is_not_finite(bad):
    matrix = np.eye(3)
    matrix[1, 1] = bad
    values, vectors = eigh(matrix)
    assert np.isnan(values).all() and np.isnan(vectors).all()


@pytest.mark.parametrize("d", [1, 2, 40, 150])
def test_lanczos_as_the_eigenvectors(d):
    matrix = _low_rank(d)
    result = largest_eigenvalue(lambda v: matrix @ v, d)
    assert result == pytest.approx(eigvalsh(matrix)[-1], rel=1e-12)
    assert largest_eigenvalue(lambda v: 0 * v, d) == 0


def ulps(result, exact):
    """The largest error, in units of the last place of the exact value."""
    return np.max(np.abs(result - exact) / np.spacing(np.abs(exact).astype(np.float64)))


def test_log():
    x = np.concatenate([RNG.random(50_000), np.exp(100 * RNG.normal(size=50_000)), [5e-324, 2.0]])
    x = np.concatenate([x[x > 0], 1 + 1e-9 * RNG.normal(size=1000)])
    assert ulps(log(x), np.log(x.astype(np.longdouble))) < 2
    assert log(np.ones(1))[0] == 0


def test_normal_quantiles():
    p = np.concatenate([RNG.random(50_000), 2.0 ** -np.arange(2, 60), 1 - 2.0 ** -np.arange(2, 53)])
    np.testing.assert_allclose(normal_quantiles(p), ndtri(p), rtol=2e-15)
    assert normal_quantiles(np.array([0.5]))[0] == 0


def test_sigmoid_and_logistic_loss():
    z = np.concatenate([np.linspace(-750, 750, 30_001), [0.0, 1e-300, 1e300, -1e300]])
    with np.errstate(over="ignore"):
        exact = 1 / (1 + np.exp(-z.astype(np.longdouble)))
    normal = z >= -708  # below, the result is 0
    assert ulps(sigmoid(z)[normal], exact[normal]) < 4 and not sigmoid(z)[~normal].any()
    assert np.isnan(sigmoid(np.array([np.nan]))).all()
    n = z.size
    w, loss, t, p, s = np.empty((5, n))
    phi(LOGISTIC, n, z, np.ones(n), w, loss, LOSS, t, p, s)
    usual = np.abs(z) < 700
    exact = np.log1p(np.exp(-np.abs(z).astype(np.longdouble))) + np.maximum(-z, 0)
    assert ulps(loss[usual], exact[usual]) < 4


def rows(d, dtype, random):
    """Rows with distinct numbers, with ties, with infinities and NaN, and sorted ones."""
    normal = random.standard_normal((4, d))
    ties = random.integers(-2, 3, (4, d)).astype(float)
    strange = np.where(random.random((4, d)) < 0.1, [[np.nan], [np.inf], [-np.inf], [-0.0]], ties)
    ascending = np.sort(np.abs(normal), axis=1)
    return np.vstack([normal, ties, strange, ascending, -ascending[:, ::-1]]).astype(dtype)


def by_sorting(row):
    """All places: first those of NaN, then by size, then as they lie."""
    keys = np.where(np.isnan(row), np.inf, np.abs(row)), np.isnan(row)
    return sorted(range(row.size), key=lambda j: (-keys[1][j].astype(int), -keys[0][j], j))


@pytest.mark.drawn(4)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [1, 2, 5, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 20 * BLOCK + 7])
def test_largest(d, dtype):
    v = rows(d, dtype, np.random.default_rng(d))
    orders = [by_sorting(row) for row in v]
    for k in {min(k, d) for k in (1, 2, 3, FEW, FEW + 1, 2 * FEW, 4 * FEW, d)}:
        wanted = [sorted(order[:k]) for order in orders]
        assert largest(v, k).tolist() == largest(np.asfortranarray(v), k).tolist() == wanted


def draw(first, workers, seed=3, purpose="up", round=5):
    return Draw(Streams(seed), purpose, round, first, workers)


@pytest.mark.parametrize(("purpose", "round"), [("x", 0), ("up/shared", 2**31)])
@pytest.mark.parametrize(("first", "workers", "count"), [(3, 1, 8), (0, 5, 9), (10**6, 2, 1)])
@pytest.mark.parametrize(("message", "repetition"), [(0, 0), (2, 0), (0, 3), (2**31, 7)])
@some_of(10, seed=[0, 9, 2**63 - 1])
def test_it_is_numpys_philox(seed, purpose, round, first, workers, count, message, repetition):
    steps = -(-count // 4)
    philox = np.random.Philox(
        key=np.array([seed, purpose_key(purpose)], np.uint64),
        counter=np.array([first * steps, repetition, round, message], np.uint64),
    )
    expected = philox.random_raw(4 * workers * steps).reshape(workers, -1)[:, :count]
    drawn = Streams(seed).raw(purpose, round, first, workers, count, message, repetition)
    assert np.array_equal(drawn, expected)
    clients = np.repeat(np.arange(first, first + workers), repetition + 1)
    some = Draw(Streams(seed), purpose, round, first, workers, clients, message)
    assert np.array_equal(some.words(count)[repetition :: repetition + 1], expected)
    assert np.array_equal(some.repetitions, list(range(repetition + 1)) * workers)
    if repetition == 0:
        every = Draw(Streams(seed), purpose, round, 0, 1, message=message).block(first, workers)
        assert np.array_equal(every.words(count), expected)


def test_uniforms_and_shared_words():
    u = draw(0, 4000).uniforms(5)
    assert u.shape == (4000, 5) and u.min() >= 0 and u.max() < 1
    assert stats.kstest(u.ravel(), "uniform").pvalue > 1e-4
    assert np.array_equal(draw(0, 2).shared_words(6), draw(5, 1).shared_words(6))
    assert not np.intersect1d(draw(0, 2).shared_words(6), draw(0, 2).shared_words(6, 1)).size


def test_subsets_are_uniform_over_all_subsets():
    d, k, m = 5, 2, 20000
    subsets = draw(0, m).subsets(d, k)
    assert (np.diff(subsets, axis=1) > 0).all()
    _, counts = np.unique(subsets @ [d, 1], return_counts=True)
    assert counts.size == 10
    assert stats.chisquare(counts).pvalue > 1e-4


def test_more_than_there_is_cannot_be_drawn_without_replacement():
    """What is in the pool after its end would be read otherwise."""
    with pytest.raises(InputError, match="'up': 8 of 7 without replacement; allowed: at most 7"):
        draw(0, 3).batches(np.array([9, 7, 8]), 8)
    with pytest.raises(InputError, match="'up': 3 of 2 without"):
        draw(0, 3).subsets(2, 3)
    assert draw(0, 0).batches(np.empty(0, np.int64), 8).shape == (0, 8)
