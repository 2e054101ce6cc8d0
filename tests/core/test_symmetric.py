"""Sums in lanes, products and eigenvectors, against NumPy's."""

import numpy as np
import pytest
from numba import TypingError, njit

from mpisim.core.numerics.eigen import eigh, eigvalsh, largest_eigenvalue
from mpisim.core.numerics.lanes import dot, load, reduce, sum_of
from mpisim.core.numerics.sums import add_gram, inner_products, product, subtract_rows, times_vector

SIZES = [0, 1, 7, 8, 9, 16, 21, 100]
RNG = np.random.default_rng(1)


def in_lanes(terms):
    """The sum in the order that `mpisim.core.numerics.lanes` states."""
    whole = terms.size // 8 * 8
    lanes = np.zeros(8, terms.dtype)
    for part in terms[:whole].reshape(-1, 8):
        lanes = lanes + part
    while lanes.size > 1:
        lanes = lanes[: lanes.size // 2] + lanes[lanes.size // 2 :]
    rest = terms.dtype.type(0)
    for term in terms[whole:]:
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
    "diagonal": lambda d: np.diag(RNG.normal(size=d)),
    "zero": lambda d: np.zeros((d, d)),
    "tiny": lambda d: np.full((d, d), 1e-200),
    "huge": lambda d: np.full((d, d), 1e200),
    "graded": lambda d: np.diag(10.0 ** -np.arange(d)) + 1e-20,
    "Wilkinson": lambda d: (
        np.diag(np.abs(np.arange(d) - d // 2) + 0.0) + np.eye(d, k=1) + np.eye(d, k=-1)
    ),
}


@pytest.mark.drawn(12)
@pytest.mark.parametrize("kind", MATRICES)
@pytest.mark.parametrize("d", [1, 2, 3, 8, 21, 60])
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
    found = largest_eigenvalue(lambda v: matrix @ v, d)
    assert found == pytest.approx(eigvalsh(matrix)[-1], rel=1e-12)
    assert largest_eigenvalue(lambda v: 0 * v, d) == 0
