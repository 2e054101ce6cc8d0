"""The k largest of each worker's numbers, in linear time, with ties in a fixed order."""

from __future__ import annotations

import numpy as np
from numba import njit

DIGIT = 12  # bits of a key that one pass looks at
FEW = 16  # this many candidates are sorted
STRIDE = 64
# by the bytes of a float: the type of its key, and the mask that removes the sign
KEYS = {4: (np.dtype(np.int32), np.int32(2**31 - 1)), 8: (np.dtype(np.int64), np.int64(2**63 - 1))}


def largest(v: np.ndarray, k: int) -> np.ndarray:
    """The indices of the k largest |v_j| of each row of ``v`` (m, d): (m, k), int64, ascending.

    Among equal ones the lower index comes first. NaN counts as larger than any number.
    """
    # The bits of absolute values, as integers, have the order of the floats; NaN is the largest.
    v, kind, unsigned = np.ascontiguousarray(v), *KEYS[v.itemsize]
    indices = np.empty((v.shape[0], k), np.int64)
    if k <= 8:  # so few can be kept in order
        _scan(v.view(kind), unsigned, indices)
    else:
        _select(np.abs(v).view(kind), 8 * v.itemsize - 1, indices)
    return indices


@njit(cache=True)
def _scan(bits, unsigned, indices):
    """Row i: keep the k largest in order; compare each key, bits & unsigned, to the least one."""
    m, k = indices.shape
    best, where = np.empty(k, bits.dtype), np.empty(k, np.int64)
    for i in range(m):
        row = bits[i]
        best[:] = -1
        least = best[k - 1]
        for start in range(0, row.size, STRIDE):
            if start + STRIDE <= row.size:
                above = 0
                for j in range(start, start + STRIDE):  # unsigned indices: the loop vectorises
                    above += (row[np.uint64(j)] & unsigned) > least
                if above == 0:
                    continue
            for j in range(start, min(start + STRIDE, row.size)):
                key = row[j] & unsigned
                if key > least:
                    t = k - 1
                    while t > 0 and best[t - 1] < key:
                        best[t], where[t] = best[t - 1], where[t - 1]
                        t -= 1
                    best[t], where[t] = key, j
                    least = best[k - 1]
        indices[i] = np.sort(where)


@njit(cache=True)
def _select(keys, bits, indices):
    """Row i: the keys above the k-th largest, then the first ones equal to it, up to k."""
    m, k = indices.shape
    counts = np.zeros(1 << DIGIT, np.int64)
    scratch = np.empty(keys.shape[1] + 1, keys.dtype)
    for i in range(m):
        row = keys[i]
        limit = _kth_largest(row, k, bits, counts, scratch)
        above = 0
        for key in row:
            above += key > limit
        ties, t = k - above, 0
        for j in range(row.size):
            if row[j] >= limit and (row[j] > limit or ties > 0):
                ties -= row[j] == limit
                indices[i, t] = j
                t += 1


@njit(cache=True)
def _kth_largest(row, k, bits, counts, scratch):
    """From the highest digit down: count, find the digit of the k-th, keep its candidates.

    ``counts`` is zero before and after.
    """
    candidates, size, shift = row, row.size, bits
    while size > FEW and shift > 0:
        width = min(DIGIT, shift)
        shift -= width
        mask = (1 << width) - 1
        top = 0
        for j in range(size):
            digit = (candidates[j] >> shift) & mask
            counts[digit] += 1
            top = max(top, digit)
        wanted = top
        while counts[wanted] < k:
            k -= counts[wanted]
            wanted -= 1
        kept = 0
        for j in range(size):
            key = candidates[j]
            digit = (key >> shift) & mask
            counts[digit] = 0
            scratch[kept] = key  # never ahead of j where both are the same array
            kept += digit == wanted
        candidates, size = scratch, kept
    return np.sort(candidates[:size])[size - k]
