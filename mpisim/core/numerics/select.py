"""The k largest of each worker's numbers, in linear time, with ties in a fixed order.

It takes two looks at a row. The first finds the largest key of each block; the k-th largest of
these is a bound, below which none of the k can be. The second looks for them in the blocks that
reach the bound. A few are kept in order on the way; more are collected, hardly more than k, and
then selected. If k is a large share of d, no bound helps, and all keys are selected from.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.core.numerics.lanes import fetch_ahead, magnitude

FEW = 16  # so many can be kept in order
BLOCK = 64  # numbers
SPARE, LONG = 3, 8192  # SPARE k blocks give a bound that few numbers reach; of LONG rows 2 k blocks
DIGIT = 12  # bits of a key that one pass looks at
SORTED = 16  # so many candidates are sorted


def largest(v: np.ndarray, k: int) -> np.ndarray:
    """The indices of the k largest |v_j| of each row of ``v`` (m, d): (m, k), int64, ascending.

    Among equal ones the lower index comes first. NaN counts as larger than any number. A tensor
    gives a tensor.
    """
    if not isinstance(v, np.ndarray):
        from mpisim.core.numerics import tensors

        return tensors.largest(v, k)
    v = np.ascontiguousarray(v)
    indices = np.empty((v.shape[0], k), np.int64)
    if k <= FEW:
        _few(v, indices)
    elif size := block_size(v.shape[1], k):
        _many(v, size, indices)
    else:
        _select(v, indices)
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


def block_size(d: int, k: int) -> int:
    """Numbers of a block such that there are at least `SPARE` k of them; 0 if k is too large."""
    size, blocks = BLOCK, k * (SPARE if d < LONG else 2)
    while size * blocks > d:
        size //= 2
    return size if size >= 8 else 0


@njit(cache=True)
def _many(v, size, indices):
    m, d = v.shape
    tops, work = np.empty(-(-d // size), np.int64), workspace(d)
    for i in range(m):
        row = v[i]
        for c in range(tops.size):
            top = magnitude(row.dtype.type(0))
            for j in range(c * size, min((c + 1) * size, d)):
                top = max(top, magnitude(row[np.uint64(j)]))
            tops[c] = top
        pick_largest(row, tops, size, work, indices[i])


@njit(cache=True)
def workspace(d):
    """What `pick_largest` works in: counts, keys, places and candidates for rows of d numbers."""
    some = np.empty((3, d + 1), np.int64)
    return np.zeros(1 << DIGIT, np.int64), some[0], some[1], some[2]


@njit(cache=True)
def pick_largest(row, tops, size, work, where):
    """where (k,) = the k largest of ``row``; ``tops`` are the largest keys of its blocks.

    A block has ``size`` numbers, and there are at least k blocks.
    """
    counts, keys, places, scratch = work
    bits = 8 * row.itemsize - 1
    bound = _kth_largest(tops, where.size, bits, counts, scratch)
    reached = 0
    for c in range(tops.size):
        if tops[c] >= bound:
            for j in range(c * size, min((c + 1) * size, row.size)):
                key = magnitude(row[np.uint64(j)])
                keys[np.uint64(reached)], places[np.uint64(reached)] = key, j
                reached += key >= bound
    _take(keys[:reached], places, bits, counts, scratch, where)


@njit(cache=True)
def _take(keys, places, bits, counts, scratch, where):
    """where (k,): the places of the keys above the k-th largest, then of the first equal to it."""
    limit = _kth_largest(keys, where.size, bits, counts, scratch)
    above = 0
    for key in keys:
        above += key > limit
    ties, t = where.size - above, 0
    for j in range(keys.size):
        if keys[j] >= limit and (keys[j] > limit or ties > 0):
            ties -= keys[j] == limit
            where[t] = places[j]
            t += 1


@njit(cache=True)
def _select(v, indices):
    """Row i: the keys above the k-th largest, then the first ones equal to it, up to k."""
    counts, places = np.zeros(1 << DIGIT, np.int64), np.arange(v.shape[1])
    bits, scratch = 8 * v.itemsize - 1, np.full(v.shape[1] + 1, magnitude(v.dtype.type(0)))
    keys = scratch[1:].copy()
    for i in range(v.shape[0]):
        for j in range(keys.size):
            keys[j] = magnitude(v[i, j])
        _take(keys, places, bits, counts, scratch, indices[i])


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
