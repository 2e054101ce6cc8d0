"""Sums taken worker by worker, so that the split into blocks does not change the result."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def add_rows(total: np.ndarray, rows: np.ndarray) -> None:
    """total (d,) += rows[0], then rows[1], and so on."""
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            total[j] += rows[i, j]


def ordered_sum(rows: np.ndarray) -> np.ndarray:
    """Sum of a (m, d) array over its first axis, row by row, shape (d,)."""
    total = np.zeros(rows.shape[1], rows.dtype)
    add_rows(total, rows)
    return total


@njit(cache=True)
def sum_blocks(values: np.ndarray, starts: np.ndarray, sums: np.ndarray) -> int:
    """sums[r] = sum of values[starts[r]:starts[r + 1]] for all r, integers; returns their sum."""
    whole = 0
    for r in range(sums.size):
        total = 0
        for i in range(starts[r], starts[r + 1]):
            total += values[i]
        sums[r] = total
        whole += total
    return whole


def rounded(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """A C-ordered copy of ``values``, any shape, in another float type.

    Numbers beyond its range become infinite, without a warning.
    """
    out = np.empty(values.shape, dtype)
    _cast(values.reshape(-1), out.reshape(-1))
    return out


@njit(cache=True)
def _cast(values, out):
    for i in range(values.size):
        out[i] = values[i]
