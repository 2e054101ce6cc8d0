"""Means over all workers, computed collectively by the ranks."""

from __future__ import annotations

import numpy as np

from mpisim.core.protocols import Collective, Matrices

BLOCK = 1 << 23  # numbers of one exchange, over all workers


def mean(star: Collective, rows: np.ndarray) -> np.ndarray:
    """(1/n) sum_i rows_i of rows (m, k), shape (k,), on every rank."""
    return star.sum_over_workers(np.ascontiguousarray(rows, np.float64)) / star.n


def mean_matrix(star: Collective, matrices: Matrices, d: int) -> np.ndarray:
    """(1/n) sum_i H_i, shape (d, d), on every rank; a few rows at a time, to bound the memory."""
    height = min(d, max(1, BLOCK // (star.n * d)))
    out = np.empty((d, d))
    for start in range(0, d, height):
        stop = min(start + height, d)
        rows = np.empty((star.m, (stop - start) * d))
        for i in range(star.m):
            rows[i] = matrices.rows(i, start, stop).ravel()
        out[start:stop] = mean(star, rows).reshape(stop - start, d)
    return (out + out.T) / 2


def from_first(star: Collective, numbers: np.ndarray) -> np.ndarray:
    """``numbers`` (k,) of worker 0's rank, on every rank, bit for bit, but -0 becomes 0."""
    rows = np.zeros((star.m, len(numbers)))
    if star.first == 0 and star.m > 0:
        rows[0] = numbers
    return star.sum_over_workers(rows)
