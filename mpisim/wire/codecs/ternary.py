"""Levels of -1, 0 and 1: how many are not zero, which, and their signs.

A message is a number of `mpisim.wire.codecs.ans`. Its state begins with 1 and takes the norms and
the k signs, the last first, the places of these levels (`mpisim.wire.codecs.places`), and k. At
most S levels that are not zero are expected, and k < T = S + sqrt(S) + 1 has the probability
7/8 / T each. Others take 3 bits, and then as many as d has digits. So a message takes about as many
bits more as there are in T over the standard deviation of k: `docs/concepts/bits.md`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.wire.codecs import ans, places
from mpisim.wire.codecs import bits as buffer

NUMBER_BITS = 31  # of the frequency of a number
USUAL = 7 << NUMBER_BITS - 3  # of 2^31: the numbers below T


@njit(cache=True)
def write(norms, bits, levels, most, payload):
    """The bytes of all messages; fills ``payload``.

    norms : (m, B), of ``bits`` bits; levels : (m, d)
    most : S, the largest number of levels other than zero that is expected
    """
    m, d = levels.shape
    words, where = np.empty(d + 2 * norms.shape[1] + 8, np.uint64), np.empty(d, np.int64)
    room = norms.shape[1] * bits + 200 + 2 * d
    buffered = buffer.new_words(m * room + places.SHARE_BITS * np.count_nonzero(levels))
    limit, pos = _limit(most, d), 0
    for i in range(m):
        x, count, k = np.uint64(1), 0, 0
        for j in range(d):
            if levels[i, j] != 0:
                where[k] = j
                k += 1
        for b in range(norms.shape[1] - 1, -1, -1):
            x, count = ans.push_bits(x, norms[i, b], bits - 1, words, count)
        for t in range(k - 1, -1, -1):
            x, count = ans.push_bits(x, np.uint64(levels[i, where[t]] < 0), 1, words, count)
        x, count = places.push(x, where[:k], d, words, count)
        x, count = _push_number(x, k, limit, d, words, count)
        pos, payload[i] = ans.put_number(buffered, pos, 0, 0, x, words, count, 0)
    return buffer.to_bytes(buffered, pos // 8)


@njit(cache=True)
def read(data, sizes, bits, most, norms, levels, payload):
    """Fill ``norms``, ``levels`` (zero before) and ``payload``; (worker, status)."""
    d, buffered, end = levels.shape[1], buffer.to_words(data), 0
    limit, where = _limit(most, d), np.empty(d, np.int64)
    for i in range(levels.shape[0]):
        start, end = end, end + 8 * sizes[i]
        pos = ans.after_zeros(buffered, start, end)
        if pos < 0:
            return i, pos
        payload[i] = end - pos + 1
        x, pos, left = ans.take_state(buffered, pos, end - pos)
        k, x, pos, left = _pop_number(x, limit, d, buffered, pos, left)
        if k > d:
            return i, buffer.RANGE
        x, pos, left = places.pop(x, where[:k], d, buffered, pos, left)
        for j in where[:k]:
            negative, x, pos, left = ans.pop_bits(x, 1, buffered, pos, left)
            levels[i, j] = -1 if negative else 1
        for b in range(norms.shape[1]):
            norms[i, b], x, pos, left = ans.pop_bits(x, bits - 1, buffered, pos, left)
        if left > 0 or x != np.uint64(1):
            return i, buffer.ENTROPY
    return 0, 0


@njit(cache=True)
def _limit(most, d):
    """T: at most d + 1."""
    return min(d + 1, np.int64(most + np.sqrt(most)) + 1)


@njit(cache=True)
def _push_number(x, k, limit, d, words, count):
    each = np.uint64(USUAL // limit)
    if k < limit:
        return ans.push(x, each * np.uint64(k), each, NUMBER_BITS, words, count)
    x, count = ans.push_bits(x, np.uint64(k - limit), buffer.bit_length(d), words, count)
    first = each * np.uint64(limit)
    return ans.push(x, first, np.uint64(1 << NUMBER_BITS) - first, NUMBER_BITS, words, count)


@njit(cache=True)
def _pop_number(x, limit, d, buffered, pos, left):
    """(k, state, position, words left); k may be above d."""
    each, slot = np.uint64(USUAL // limit), x & np.uint64((1 << NUMBER_BITS) - 1)
    k, f = slot // each, each
    if k >= np.uint64(limit):
        k, f = np.uint64(limit), np.uint64(1 << NUMBER_BITS) - each * np.uint64(limit)
    x = f * (x >> np.uint64(NUMBER_BITS)) + slot - each * k
    x, pos, left = ans.refill(x, buffered, pos, left)
    if k == np.uint64(limit):
        rest, x, pos, left = ans.pop_bits(x, buffer.bit_length(d), buffered, pos, left)
        k += rest
    return np.int64(k), x, pos, left
