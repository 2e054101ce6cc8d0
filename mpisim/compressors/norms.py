"""Norms of each worker's vector, in an order of operations that no block or machine changes.

Coordinate j is added to partial sum j mod 4, in float64. This defines the result, and lets the
processor work on four coordinates at a time.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.core.arrays import to_host
from mpisim.wire.codecs.bits import round_scales

SMALLEST = 2.0**-997  # the inverse of less may overflow


@njit(cache=True, forceinline=True)
def _term(x, scale, squared):
    y = x * scale
    return y * y if squared else abs(y)


@njit(cache=True)
def _sum(row, scale, squared):
    """The sum of (scale v_j)^2, or of |scale v_j|; ``scale`` is a float64."""
    a = b = c = e = 0.0
    even = row.size - row.size % 4
    for j in range(0, even, 4):
        a += _term(row[j], scale, squared)
        b += _term(row[j + 1], scale, squared)
        c += _term(row[j + 2], scale, squared)
        e += _term(row[j + 3], scale, squared)
    total = (a + b) + (c + e)
    for j in range(even, row.size):
        total += _term(row[j], scale, squared)
    return total


@njit(cache=True)
def _one_norms(v, starts):
    out = np.empty((v.shape[0], starts.size - 1))
    for i in range(out.shape[0]):
        for b in range(out.shape[1]):
            out[i, b] = _sum(v[i, starts[b] : starts[b + 1]], 1.0, False)
    return out


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
    norm, largest = np.sqrt(_sum(row, 1.0, True)), _largest(row)
    if 0 < largest < np.inf and not 1e-140 < norm < 1e150:
        scale = max(largest, SMALLEST)
        norm = scale * np.sqrt(_sum(row, 1 / scale, True))
    return norm if norm > largest else largest


@njit(cache=True)
def block_norms(v, starts, euclidean):
    """Of coordinates starts[b] to starts[b+1] - 1 of each row: shape (m, B), float64.

    |v|_2, not below the largest |v_j|, without overflow; or max |v_j|, NaN where there is a NaN.
    """
    out = np.empty((v.shape[0], starts.size - 1))
    for i in range(out.shape[0]):
        for b in range(out.shape[1]):
            part = v[i, starts[b] : starts[b + 1]]
            out[i, b] = _two_norm(part) if euclidean else _largest(part)
    return out


def one_norms(v: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """|v_i|_1 of coordinates starts[b] to starts[b+1] - 1; shape (m, B), float64.

    A tensor is added up on its device, in an order of the device's own.
    """
    if isinstance(v, np.ndarray):
        return _one_norms(np.ascontiguousarray(v), starts)
    from mpisim.core.numerics import tensors

    return to_host(tensors.one_norms(v, starts))


def rounded_norms(v: np.ndarray, starts: np.ndarray, order: str, wire: np.dtype) -> np.ndarray:
    """`block_norms` of order "2" or "inf", rounded up to wire precision, shape (m, B).

    The norms of a tensor are computed on its device.
    """
    euclidean = order == "2"
    if isinstance(v, np.ndarray):
        return round_scales(block_norms(np.ascontiguousarray(v), starts, euclidean), wire, up=True)
    from mpisim.core.numerics import tensors

    exact = (tensors.two_norms if euclidean else tensors.max_norms)(v, starts)
    return round_scales(to_host(exact), wire, up=True)
