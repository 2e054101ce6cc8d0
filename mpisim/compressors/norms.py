"""Norms of each worker's vector, in an order of operations that no block or machine changes.

Coordinate j is added to partial sum j mod 4, in float64. This defines the result, and lets the
processor work on four coordinates at a time.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.core.arrays import MESSAGE, to_host


@njit(cache=True)
def _one_norm(row):
    a = b = c = e = 0.0
    whole = row.size - row.size % 4
    for j in range(0, whole, 4):
        a += abs(np.float64(row[j]))
        b += abs(np.float64(row[j + 1]))
        c += abs(np.float64(row[j + 2]))
        e += abs(np.float64(row[j + 3]))
    total = (a + b) + (c + e)
    for j in range(whole, row.size):
        total += abs(np.float64(row[j]))
    return total


def one_norms(v: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """|v_i|_1 of coordinates starts[b] to starts[b+1] - 1; shape (m, B), float64.

    A tensor is added up on its device, in an order of the device's own.
    """
    if isinstance(v, np.ndarray):
        return _one_norms(np.ascontiguousarray(v), starts)
    from mpisim.core.numerics import tensors

    return to_host(tensors.one_norms(v, starts), MESSAGE)


@njit(cache=True)
def _one_norms(v, starts):
    blocks = starts.size - 1
    out = np.empty((v.shape[0], blocks))
    for i in range(v.shape[0]):
        for b in range(blocks):
            out[i, b] = _one_norm(v[i, starts[b] : starts[b + 1]])
    return out


@njit(cache=True)
def _square_sum(row, scale):
    a = b = c = e = 0.0
    whole = row.size - row.size % 4
    for j in range(0, whole, 4):
        p, q = row[j] * scale, row[j + 1] * scale
        r, s = row[j + 2] * scale, row[j + 3] * scale
        a += p * p
        b += q * q
        c += r * r
        e += s * s
    total = (a + b) + (c + e)
    for j in range(whole, row.size):
        total += (row[j] * scale) ** 2
    return total


@njit(cache=True)
def _largest(row):
    """max |v_j|, or NaN if there is one."""
    a = b = 0.0
    for j in range(0, row.size - 1, 2):
        x, y = abs(np.float64(row[j])), abs(np.float64(row[j + 1]))
        a = a if a > x or a != a else x  # a NaN stays
        b = b if b > y or b != b else y
    if row.size % 2:
        x = abs(np.float64(row[-1]))
        a = a if a > x or a != a else x
    return a if a > b or a != a else b


@njit(cache=True)
def _two_norm(row):
    norm, largest = np.sqrt(_square_sum(row, 1.0)), _largest(row)
    if 1e-300 < largest < np.inf and not 1e-140 < norm < 1e150:
        norm = largest * np.sqrt(_square_sum(row, 1 / largest))
    return norm if norm > largest else largest


@njit(cache=True)
def two_norms(v):
    """|v_i|_2 of each row, not below the largest |v_ij|, without overflow; shape (m,), float64."""
    out = np.empty(v.shape[0])
    for i in range(v.shape[0]):
        out[i] = _two_norm(v[i])
    return out


@njit(cache=True)
def block_norms(v, starts):
    """`two_norms` of each block of coordinates, starts[b] to starts[b+1] - 1; shape (m, B)."""
    blocks = starts.size - 1
    out = np.empty((v.shape[0], blocks))
    for i in range(v.shape[0]):
        for b in range(blocks):
            out[i, b] = _two_norm(v[i, starts[b] : starts[b + 1]])
    return out


@njit(cache=True)
def block_max_norms(v, starts):
    """`max_norms` of each block of coordinates, starts[b] to starts[b+1] - 1; shape (m, B)."""
    blocks = starts.size - 1
    out = np.empty((v.shape[0], blocks))
    for i in range(v.shape[0]):
        for b in range(blocks):
            out[i, b] = _largest(v[i, starts[b] : starts[b + 1]])
    return out


@njit(cache=True)
def max_norms(v):
    """The largest |v_ij| of each row, NaN where there is a NaN; shape (m,), float64."""
    out = np.empty(v.shape[0])
    for i in range(v.shape[0]):
        out[i] = _largest(v[i])
    return out
