"""Which k of d coordinates a message has, in log2 C(d, k) bits, and their values; ternary levels.

A message is a number of `mpisim.wire.codecs.ans`. Where only the sender knows k, its head is k + 1
with as many zeros in front as it has digits after the first (Elias gamma). The state begins with 1
and takes the values, the last first. Then come the coordinates as d coins, the last first: of the
coordinates from j on, the share that is kept is the probability of j.

Levels of -1, 0 and 1 are k coordinates and their signs. The state begins with 1 and takes the norms
and the k signs, the last first, the places of these levels, and k. At most S levels that are not
zero are expected, and k < T = S + sqrt(S) + 1 has the probability 7/8 / T each. Others take 3 bits,
and then as many as d has digits. So a message takes about as many bits more as there are in T over
the standard deviation of k: `docs/concepts/bits.md`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.wire.codecs import ans
from mpisim.wire.codecs import bits as buffer
from mpisim.wire.codecs.elias import nonzeros

SHARE_BITS = 20
ALL = np.uint64(1 << SHARE_BITS)


@njit(cache=True, forceinline=True)
def _share(k, d):
    """k / d, 0 < k < d, as a frequency of 2^SHARE_BITS."""
    top = (1 << SHARE_BITS) - 1
    return np.uint64(min(top, max(1, (k << SHARE_BITS) // d)))


@njit(cache=True)
def write(ptr, indices, raw, d, agreed, bits):
    """(bytes of all messages, bytes, bits of each).

    ptr, indices, raw : worker i sends ``indices``, ascending, and ``raw`` values of ``bits`` bits
        from ptr[i] to ptr[i+1] - 1
    agreed : whether readers know the number of these
    """
    m, pos = ptr.size - 1, 0
    payload, sizes = np.empty(m, np.int64), np.empty(m, np.int64)
    k = np.diff(ptr).max() if m > 0 else 0
    words = np.empty(d // 16 + 4 * k + 4, np.uint64)
    buffered = buffer.new_words(m * (160 + 2 * d) + indices.size * (SHARE_BITS + 32 + bits))
    for i in range(m):
        start, row, x, count = pos, indices[ptr[i] : ptr[i + 1]], np.uint64(1), 0
        for t in range(ptr[i + 1] - 1, ptr[i] - 1, -1):
            for shift in range(bits - 32, -1, -32):  # the state is 1, or has 33 bits
                if x >= ans.FULL:
                    words[count], x = x & ans.LOW, x >> np.uint64(32)
                    count += 1
                x = x << np.uint64(32) | np.uint64(raw[t]) >> np.uint64(shift) & ans.LOW
        x, count = push(x, row, d, words, count)
        head = 0 if agreed else 2 * buffer.bit_length(row.size + 1) - 1
        pos, payload[i] = ans.put_number(buffered, pos, row.size + 1, head, x, words, count, 0)
        sizes[i] = (pos - start) // 8
    return buffer.to_bytes(buffered, pos // 8), sizes, payload


@njit(cache=True)
def push(x, indices, d, words, count):
    """The state with the coordinates ``indices``, ascending, and the number of ``words``."""
    k, t = indices.size, 0
    for j in range(d - 1, -1, -1):
        here = t < k and indices[k - 1 - t] == j
        left = t + int(here)
        if 0 < left < d - j:
            f = _share(left, d - j)
            if here:
                x, count = ans.push(x, np.uint64(0), f, SHARE_BITS, words, count)
            else:
                x, count = ans.push(x, f, ALL - f, SHARE_BITS, words, count)
        t = left
    return x, count


@njit(cache=True)
def read(data, sizes, counts, indices, raw, payload, k, d, agreed, bits):
    """Fill ``counts``, ``indices``, ``raw`` and ``payload`` of `write`; returns (worker, status).

    k : of all workers, if ``agreed``; else the most
    """
    buffered, end, first = buffer.to_words(data), 0, np.int64(0)
    for i in range(counts.size):
        start, end = end, end + 8 * sizes[i]
        pos = ans.after_zeros(buffered, start, end)
        if pos < 0:
            return i, pos
        payload[i] = end - pos + 1
        count, zeros = np.int64(k), 0
        if not agreed:
            zeros = 31 - buffer.bit_length(np.int64(buffer.take(buffered, pos, 31)))
            count = np.int64(buffer.take(buffered, pos, 2 * zeros + 1)) - 1
            pos += 2 * zeros + 1
        if count > k or zeros > 30:
            return i, buffer.LARGE
        if pos + count * bits > end:
            return i, buffer.SHORT
        last = first + count
        x, pos, left = ans.take_state(buffered, pos, end - pos)
        x, pos, left = pop(x, indices[first:last], d, buffered, pos, left)
        for t in range(first, last):
            value = np.uint64(0)
            for shift in range(0, bits, 32):
                value |= (x & ans.LOW) << np.uint64(shift)
                x, pos, left = ans.refill(x >> np.uint64(32), buffered, pos, left)
            raw[t] = value
        if left > 0 or x != np.uint64(1):
            return i, buffer.ENTROPY
        counts[i], first = count, last
    return 0, 0


@njit(cache=True)
def pop(x, indices, d, buffered, pos, left):
    """Fill ``indices``, as `push` has them; (state, position, words left)."""
    k, t, low = indices.size, 0, ALL - np.uint64(1)
    for j in range(d):
        if t == k:
            break
        here = k - t == d - j
        if not here:
            f, slot = _share(k - t, d - j), x & low
            here, x = slot < f, x >> np.uint64(SHARE_BITS)
            x = f * x + slot if here else (ALL - f) * x + slot - f
            x, pos, left = ans.refill(x, buffered, pos, left)
        if here:
            indices[t] = j
            t += 1
    return x, pos, left


NUMBER_BITS = 31  # of the frequency of a number
USUAL = 7 << NUMBER_BITS - 3  # of 2^31: the numbers below T


@njit(cache=True)
def write_levels(norms, bits, levels, most, payload):
    """The bytes of all messages; fills ``payload``.

    norms : (m, B), of ``bits`` bits; levels : (m, d)
    most : S, the largest number of levels other than zero that is expected
    """
    m, d = levels.shape
    words, where = np.empty(d + 2 * norms.shape[1] + 8, np.uint64), np.empty(d, np.int64)
    room = norms.shape[1] * bits + 200 + 2 * d
    buffered = buffer.new_words(m * room + SHARE_BITS * np.count_nonzero(levels))
    limit, pos = _limit(most, d), 0
    for i in range(m):
        x, count, k = np.uint64(1), 0, nonzeros(levels[i], where)
        for b in range(norms.shape[1] - 1, -1, -1):
            x, count = ans.push_bits(x, norms[i, b], bits - 1, words, count)
        for t in range(k - 1, -1, -1):
            x, count = ans.push_bits(x, np.uint64(levels[i, where[t]] < 0), 1, words, count)
        x, count = push(x, where[:k], d, words, count)
        x, count = _push_number(x, k, limit, d, words, count)
        pos, payload[i] = ans.put_number(buffered, pos, 0, 0, x, words, count, 0)
    return buffer.to_bytes(buffered, pos // 8)


@njit(cache=True)
def read_levels(data, sizes, bits, most, norms, levels, payload):
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
        x, pos, left = pop(x, where[:k], d, buffered, pos, left)
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
