"""Norms of each worker's vector, in an order of operations that no block or machine changes.

Coordinate j is added to partial sum j mod 4, in float64. This defines the result, and lets the
processor work on four coordinates at a time.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.core.arrays import to_host
from mpisim.wire.codecs.bits import raw, round_into, round_scales

SMALLEST = 2.0**-997  # the inverse of less may overflow


@njit(cache=True)
def _one_norm(row):
    a = b = c = e = 0.0
    even = row.size - row.size % 4
    for j in range(0, even, 4):
        a += abs(np.float64(row[j]))
        b += abs(np.float64(row[j + 1]))
        c += abs(np.float64(row[j + 2]))
        e += abs(np.float64(row[j + 3]))
    total = (a + b) + (c + e)
    for j in range(even, row.size):
        total += abs(np.float64(row[j]))
    return total


@njit(cache=True)
def _one_norms(v, starts):
    out = np.empty((v.shape[0], starts.size - 1))
    for i in range(out.shape[0]):
        for b in range(out.shape[1]):
            out[i, b] = _one_norm(v[i, starts[b] : starts[b + 1]])
    return out


@njit(cache=True)
def _square_sum(row, scale):
    a = b = c = e = 0.0
    even = row.size - row.size % 4
    for j in range(0, even, 4):
        p, q = row[j] * scale, row[j + 1] * scale
        r, s = row[j + 2] * scale, row[j + 3] * scale
        a += p * p
        b += q * q
        c += r * r
        e += s * s
    total = (a + b) + (c + e)
    for j in range(even, row.size):
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
    if 0 < largest < np.inf and not 1e-140 < norm < 1e150:
        scale = max(largest, SMALLEST)
        norm = scale * np.sqrt(_square_sum(row, 1 / scale))
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


@njit(cache=True)
def _rounded_norms(v, starts, euclidean, out, unsigned):
    norms = block_norms(v, starts, euclidean)
    round_into(norms.reshape(-1), out.reshape(-1), unsigned.reshape(-1), True)


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
        out = np.empty((len(v), starts.size - 1), wire)
        _rounded_norms(np.ascontiguousarray(v), starts, euclidean, out, raw(out))
        return out
    from mpisim.core.numerics import tensors

    exact = (tensors.two_norms if euclidean else tensors.max_norms)(v, starts)
    return round_scales(to_host(exact), wire, up=True)
