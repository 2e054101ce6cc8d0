"""Compiled loops that several rooms share. All go worker by worker, so that no result depends on
how the workers are split into blocks."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def add_rows(total: np.ndarray, rows: np.ndarray) -> None:
    """total (d,) += rows[0], then rows[1], ...: worker order, whatever the block."""
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            total[j] += rows[i, j]


def ordered_sum(rows: np.ndarray) -> np.ndarray:
    """Sum of a (m, d) array over its first axis, row by row, shape (d,)."""
    total = np.zeros(rows.shape[1], rows.dtype)
    add_rows(total, rows)
    return total


@njit(cache=True)
def sums_of_blocks(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Sums of values[starts[r]:starts[r + 1]], integers, for all r."""
    sums = np.zeros(starts.size - 1, np.int64)
    for r in range(sums.size):
        for i in range(starts[r], starts[r + 1]):
            sums[r] += values[i]
    return sums
