"""The k largest of each worker's numbers, in linear time, with ties in a fixed order.

A few of them take two looks at a row. The first finds the largest key of each block; the k-th
largest of these is a bound, below which none of the k can be. The second looks for them in the
blocks that reach the bound, hardly more than k.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.core.instructions import fetch_ahead, magnitude

FEW = 16  # so many can be kept in order
BLOCK = 64  # numbers
DIGIT = 12  # bits of a key that one pass looks at
SORTED = 16  # so many candidates are sorted
KEYS = {4: np.dtype(np.int32), 8: np.dtype(np.int64)}  # of a float of so many bytes


def largest(v: np.ndarray, k: int) -> np.ndarray:
    """The indices of the k largest |v_j| of each row of ``v`` (m, d): (m, k), int64, ascending.

    Among equal ones the lower index comes first. NaN counts as larger than any number.
    """
    v = np.ascontiguousarray(v)
    indices = np.empty((v.shape[0], k), np.int64)
    if k <= FEW:
        _few(v, indices)
    else:
        _select(np.abs(v).view(KEYS[v.itemsize]), 8 * v.itemsize - 1, indices)
    return indices


@njit(cache=True)
def _few(v, indices):
    """The two looks at each row, described above."""
    m, d = v.shape
    tops, best = np.empty(-(-d // BLOCK), np.int64), np.empty(indices.shape[1], np.int64)
    for i in range(m):
        row, where = v[i], indices[i]
        best[:] = -1
        for c in range(tops.size):
            fetch_ahead(v, i * d + c * BLOCK, BLOCK)
            top = magnitude(row.dtype.type(0))
            for j in range(c * BLOCK, min((c + 1) * BLOCK, d)):
                top = max(top, magnitude(row[np.uint64(j)]))
            tops[c] = top
            rank(top, best)
        bound = best[-1]
        best[:] = -1
        for c in range(tops.size):
            if tops[c] >= bound:
                for j in range(c * BLOCK, min((c + 1) * BLOCK, d)):
                    key = magnitude(row[np.uint64(j)])  # unsigned: no test for a negative index
                    if key >= bound and key > best[-1]:
                        insert(key, j, best, where)
        sort(where)


@njit(inline="always")
def rank(key, best):
    """Put ``key`` into ``best``, in descending order, whose last one drops out."""
    for t in range(best.size):  # without a branch that the processor would have to guess
        best[t], key = max(best[t], key), min(best[t], key)


@njit(inline="always")
def insert(key, j, best, where):
    """`rank` for a key above the last of ``best``, and index j likewise."""
    t = best.size - 1
    while t > 0 and best[t - 1] < key:
        best[t], where[t] = best[t - 1], where[t - 1]
        t -= 1
    best[t], where[t] = key, j


@njit(inline="always")
def sort(where):
    """Sort a few indices in place."""
    for s in range(1, where.size):
        j, t = where[s], s
        while t > 0 and where[t - 1] > j:
            where[t] = where[t - 1]
            t -= 1
        where[t] = j


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
    while size > SORTED and shift > 0:
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
