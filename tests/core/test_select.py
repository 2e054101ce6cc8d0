"""The k largest of each row against a sort, around the sizes at which the search changes."""

import numpy as np
import pytest

from mpisim.core.numerics.select import BLOCK, FEW, largest


def rows(d, dtype, random):
    """Rows with distinct numbers, with ties, with infinities and NaN, and sorted ones."""
    normal = random.standard_normal((4, d))
    ties = random.integers(-2, 3, (4, d)).astype(float)
    strange = np.where(random.random((4, d)) < 0.1, [[np.nan], [np.inf], [-np.inf], [-0.0]], ties)
    ascending = np.sort(np.abs(normal), axis=1)
    return np.vstack([normal, ties, strange, ascending, -ascending[:, ::-1]]).astype(dtype)


def by_sorting(row, k):
    keys = np.where(np.isnan(row), np.inf, np.abs(row)), np.isnan(row)
    order = sorted(range(row.size), key=lambda j: (-keys[1][j].astype(int), -keys[0][j], j))
    return sorted(order[:k])


@pytest.mark.drawn(8)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [1, 2, 5, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 20 * BLOCK + 7])
def test_largest(d, dtype):
    v = rows(d, dtype, np.random.default_rng(d))
    for k in {min(k, d) for k in (1, 2, 3, FEW, FEW + 1, 2 * FEW, 4 * FEW, d)}:
        assert largest(v, k).tolist() == [by_sorting(row, k) for row in v]


def test_rows_that_are_not_contiguous():
    v = np.random.default_rng(0).standard_normal((200, 6))
    assert np.array_equal(largest(v.T, 2), largest(v.T.copy(), 2))
