"""Sums and products of arrays in one order, on every processor and in every block of workers."""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.core.numerics.lanes import dot


@njit(cache=True)
def product(a, b):
    """a b, summed in the order of b's rows."""
    out = np.zeros((a.shape[0], b.shape[1]), a.dtype)
    for i in range(a.shape[0]):
        row = out[i]
        for k in range(a.shape[1]):
            factor, column = a[i, k], b[k]
            for c in range(row.size):
                row[c] += factor * column[c]
    return out


def norm(v: np.ndarray) -> float:
    """|v|_2 of a contiguous vector (d,)."""
    return float(np.sqrt(dot(v, v)))


@njit(cache=True)
def squared_norms(rows):
    """|row|_2^2 of contiguous rows (k, d), shape (k,)."""
    out = np.empty(rows.shape[0], rows.dtype)
    for i in range(rows.shape[0]):
        out[i] = dot(rows[i], rows[i])
    return out


@njit(cache=True)
def times_vector(rows, v):
    """rows v, shape (k,), for contiguous rows (k, d)."""
    out = np.empty(rows.shape[0], v.dtype)
    for i in range(rows.shape[0]):
        out[i] = dot(rows[i], v)
    return out


@njit(cache=True)
def subtract_rows(v, weights, rows):
    """v (d,) -= weights[i] rows[i] for i in ascending order."""
    for i in range(rows.shape[0]):
        weight, row = weights[i], rows[i]
        for j in range(v.size):
            v[j] -= weight * row[j]


@njit(cache=True, forceinline=True)
def add_four(out, rows, numbers, weights):
    """out (d,) += weights[k] times row numbers[k] of ``rows`` (flat) for k = 0, ..., 3."""
    (u, v, w, x), d = weights, np.uint64(out.size)  # unsigned: no test for a negative index
    a, b, c, e = numbers[0] * d, numbers[1] * d, numbers[2] * d, numbers[3] * d
    for j in range(d):
        total = out[j] + u * rows[a + j] + v * rows[b + j]
        out[j] = total + w * rows[c + j] + x * rows[e + j]


@njit(cache=True)
def add_gram(rows, weights, start, out):
    """out (k, d) += rows start to start + k - 1 of sum_t weights_t a_t a_t^T; a_t: ``rows``.

    Both are contiguous, float64. Row after row is added; four in one pass over ``out``.
    """
    n, flat = rows.shape[0], rows.reshape(-1)
    four = n // 4 * 4
    for a in range(0, four, 4):
        b, c, e = a + 1, a + 2, a + 3
        numbers = (np.uint64(a), np.uint64(b), np.uint64(c), np.uint64(e))
        for i in range(out.shape[0]):
            j = start + i
            u, v, w, x = rows[a, j], rows[b, j], rows[c, j], rows[e, j]
            factors = (weights[a] * u, weights[b] * v, weights[c] * w, weights[e] * x)
            add_four(out[i], flat, numbers, factors)
    for t in range(four, n):
        for i in range(out.shape[0]):
            factor = weights[t] * rows[t, start + i]
            for j in range(out.shape[1]):
                out[i, j] += factor * rows[t, j]


@njit(cache=True)
def inner_products(rows):
    """rows rows^T, shape (k, k), for contiguous rows (k, d)."""
    out = np.empty((rows.shape[0], rows.shape[0]))
    for i in range(rows.shape[0]):
        for j in range(i + 1):
            out[i, j] = out[j, i] = dot(rows[i], rows[j])
    return out


@njit(cache=True)
def add_rows(total: np.ndarray, rows: np.ndarray) -> None:
    """total (d,) += rows[0], then rows[1], and so on."""
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            total[j] += rows[i, j]


@njit(cache=True)
def add_by_run(totals: np.ndarray, rows: np.ndarray, first: int, n: int) -> None:
    """totals[(first + i) // n] += rows[i] for i in ascending order: a total for each n workers."""
    for i in range(rows.shape[0]):
        total = totals[(first + i) // n]
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
    everything = 0
    for r in range(sums.size):
        total = 0
        for i in range(starts[r], starts[r + 1]):
            total += values[i]
        sums[r] = total
        everything += total
    return everything


def rounded(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """A C-ordered copy of ``values``, any shape, in another float type.

    Numbers beyond its range become infinite, without a warning.
    """
    if values.dtype == dtype:
        return values.copy()
    out = np.empty(values.shape, dtype)
    _cast(values.ravel(), out.ravel())
    return out


@njit(cache=True)
def _cast(values, out):
    for i in range(values.size):
        out[i] = values[i]


@njit(cache=True)
def chosen_rows(ptr, indices, rows):
    """The CSR rows with the numbers ``rows``: ptr (rows + 1,), int64, and indices."""
    out_ptr = np.zeros(rows.size + 1, np.int64)
    for i in range(rows.size):
        out_ptr[i + 1] = out_ptr[i] + ptr[rows[i] + 1] - ptr[rows[i]]
    out = np.empty(out_ptr[-1], indices.dtype)
    for i in range(rows.size):
        out[out_ptr[i] : out_ptr[i + 1]] = indices[ptr[rows[i]] : ptr[rows[i] + 1]]
    return out_ptr, out
