"""Levels as in Appendix E.1 of the smoothness-aware quantization paper, the code "e1".

The message of a worker is its norms without their sign bits (31 bits each with float32 on the
wire), then, for each stretch of at most 1024 coordinates, of d' coordinates with k non-zero levels:

    k, in as many bits as d' has binary digits;
    the rank of the set of non-zero levels among all sets of k, in ceil(log2 C(d', k)) bits;
    k sign bits (1: negative);
    each |level| as |level| - 1 ones and a zero;

and ones up to the next byte. For d <= 1024 that is the paper's 31 + log d + log C(d, n0) + signs +
levels; longer vectors are cut, as ranks are numbers of up to d bits and would take quadratic time.
Sets are ranked in the combinatorial number system: rank = sum_t C(j_t, t), j_1 < ... < j_k.

Large numbers are arrays of 32-bit digits, the lowest first.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.wire.codecs.bits import (
    EMPTY,
    LEVEL,
    PADDING,
    RANGE,
    SHORT,
    bit_length,
    is_padding,
    pad,
    peek,
    put,
    take,
)
from mpisim.wire.codecs.elias import means_no_levels

STRETCH = 1024
DIGITS = STRETCH // 32 + 2  # of C(1024, 512) times 1024
ALL = np.uint64(0xFFFFFFFF)


@njit(cache=True)
def _scale(number, size, factor, divisor):
    """number = number * factor / divisor, a whole number; both below 2^31. Returns its new size."""
    carry = np.uint64(0)
    for i in range(size):
        carry += number[i] * np.uint64(factor)
        number[i] = carry & ALL
        carry >>= np.uint64(32)
    if carry:
        number[size] = carry
        size += 1
    rest, by = np.uint64(0), np.uint64(divisor)
    for i in range(size - 1, -1, -1):
        rest = rest << np.uint64(32) | number[i]
        number[i] = rest // by
        rest -= number[i] * by
    while size > 0 and number[size - 1] == 0:
        size -= 1
    return size


@njit(cache=True)
def _choose(number, d, k):
    """number = C(d, k); returns its size."""
    k = min(k, d - k)
    number[0], size = 1, 1
    for i in range(1, k + 1):
        size = _scale(number, size, d - k + i, i)
    return size


@njit(cache=True)
def _rank_bits(number, size):
    """ceil(log2 number), number >= 1."""
    top = np.int64(number[size - 1])
    bits = 32 * (size - 1) + bit_length(top)
    power = (top & (top - 1)) == 0
    for i in range(size - 1):
        power = power and number[i] == 0
    return bits - int(power)


@njit(cache=True)
def _at_least(first, second, size):
    """Whether first >= second, which has ``size`` digits; first may have DIGITS."""
    for i in range(first.size - 1, -1, -1):
        other = second[i] if i < size else np.uint64(0)
        if first[i] != other:
            return first[i] > other
    return True


@njit(cache=True)
def _add(total, number, size):
    carry = np.uint64(0)
    for i in range(total.size):
        if i >= size and carry == 0:
            break
        carry += total[i] + (number[i] if i < size else np.uint64(0))
        total[i] = carry & ALL
        carry >>= np.uint64(32)


@njit(cache=True)
def _subtract(total, number, size):
    borrow = np.uint64(0)
    for i in range(total.size):
        if i >= size and borrow == 0:
            break
        take_off = (number[i] if i < size else np.uint64(0)) + borrow
        borrow = np.uint64(1) if total[i] < take_off else np.uint64(0)
        total[i] = (total[i] + (borrow << np.uint64(32))) - take_off


@njit(cache=True)
def _set_rank(row, k, number, rank):
    """rank = that of the non-zero places of ``row``; ``number`` is overwritten."""
    rank[:] = 0
    size = _choose(number, row.size, k)
    j = row.size
    while 0 < k < j:
        size = _scale(number, size, j - k, j)  # C(j - 1, k)
        j -= 1
        if row[j] != 0:
            _add(rank, number, size)
            size = _scale(number, size, k, j - k + 1)  # C(j, k - 1)
            k -= 1


@njit(cache=True)
def _set_places(places, k, number, size, rank):
    """places (d',) = 1 where the set of ``rank`` has its k members; ``number`` is C(d', k)."""
    places[:] = 0
    j = places.size
    while 0 < k < j:
        size = _scale(number, size, j - k, j)
        j -= 1
        if _at_least(rank, number, size):
            _subtract(rank, number, size)
            places[j] = 1
            size = _scale(number, size, k, j - k + 1)
            k -= 1
    for i in range(k):
        places[i] = 1


@njit(cache=True)
def count_bits(levels):
    """Bits of each message without norms and padding, shape (m,), int64."""
    m, d = levels.shape
    bits = np.zeros(m, np.int64)
    number = np.empty(DIGITS, np.uint64)
    for i in range(m):
        for start in range(0, d, STRETCH):
            row = levels[i, start : start + STRETCH]
            k = 0
            for level in row:
                k += level != 0
                bits[i] += abs(np.int64(level))
            bits[i] += bit_length(row.size) + k + _rank_bits(number, _choose(number, row.size, k))
    return bits


@njit(cache=True)
def write(words, norms, bits, levels):
    """All messages of a block; ``norms``: shape (m, B), uint64, their ``bits`` low bits."""
    m, d = levels.shape
    number, rank = np.empty(DIGITS, np.uint64), np.empty(DIGITS, np.uint64)
    pos = 0
    for i in range(m):
        for norm in norms[i]:
            pos = put(words, pos, norm, bits)
        for start in range(0, d, STRETCH):
            pos = _write_stretch(words, pos, levels[i, start : start + STRETCH], number, rank)
        pos = pad(words, pos)
    return pos


@njit(cache=True)
def _write_stretch(words, pos, row, number, rank):
    k = 0
    for level in row:
        k += level != 0
    pos = put(words, pos, k, bit_length(row.size))
    width = _rank_bits(number, _choose(number, row.size, k))
    _set_rank(row, k, number, rank)
    for i in range((width + 31) // 32 - 1, -1, -1):
        length = min(32, width - 32 * i)
        pos = put(words, pos, rank[i], length)
    for level in row:
        if level != 0:
            pos = put(words, pos, int(level < 0), 1)
    for level in row:
        ones = abs(np.int64(level)) - 1
        if ones < 0:
            continue
        while ones > 62:
            pos = put(words, pos, (1 << 62) - 1, 62)
            ones -= 62
        pos = put(words, pos, (1 << (ones + 1)) - 2, ones + 1)
    return pos


@njit(cache=True)
def read(words, sizes, bits, limits, starts, norms, levels, payload):
    """All messages of a block into ``norms``, ``levels`` (zero before) and ``payload`` (bits).

    sizes : bytes of each message, shape (m,); limits : shape (1 or m, 1 or d).
    Returns (worker, status); a status below 0 says why the worker's bytes are no message.
    """
    m, d = levels.shape
    number, rank = np.empty(DIGITS, np.uint64), np.empty(DIGITS, np.uint64)
    end = 0
    for i in range(m):
        pos, end = end, end + 8 * sizes[i]
        if end - pos < norms.shape[1] * bits:
            return i, SHORT
        for b in range(norms.shape[1]):
            norms[i, b] = take(words, pos, bits)
            pos += bits
        own = limits[min(i, limits.shape[0] - 1)]
        for start in range(0, d, STRETCH):
            row = levels[i, start : start + STRETCH]
            most = own[start : start + STRETCH] if own.size > 1 else own
            pos = _read_stretch(words, pos, end, row, most, number, rank)
            if pos < 0:
                return i, pos
        if not is_padding(words, pos, end):
            return i, PADDING
        if not _levels_fit(norms[i], bits + 1, starts, levels[i]):
            return i, EMPTY
        payload[i] = pos - (end - 8 * sizes[i])
    return 0, 0


@njit(cache=True)
def _read_stretch(words, pos, end, row, most, number, rank):
    width = bit_length(row.size)
    if pos + width > end:
        return SHORT
    k = np.int64(take(words, pos, width))
    pos += width
    if k > row.size:
        return RANGE
    size = _choose(number, row.size, k)
    width = _rank_bits(number, size)
    if pos + width + 2 * k > end:  # a sign and a level take two bits at least
        return SHORT
    rank[:] = 0
    for i in range((width + 31) // 32 - 1, -1, -1):
        length = min(32, width - 32 * i)
        rank[i] = take(words, pos, length)
        pos += length
    if _at_least(rank, number, size):
        return RANGE
    _set_places(row, k, number, size, rank)
    for j in range(row.size):
        if row[j]:
            row[j] = -1 if take(words, pos, 1) == 1 else 1
            pos += 1
    stride = int(most.size > 1)
    for j in range(row.size):
        if row[j]:
            level, pos = _read_unary(words, pos, end, most[j * stride])
            if level < 0:
                return level
            row[j] *= level
    return pos


@njit(cache=True)
def _read_unary(words, pos, end, most):
    """(level, new position), or (status, pos)."""
    level = 1
    while pos < end:
        ones = 63 - bit_length(np.int64(~peek(words, pos) >> np.uint64(1)))  # 63: all, at least
        level += ones
        pos += ones
        if level > most:
            return LEVEL, pos
        if ones < 63:
            pos += 1
            return (level if pos <= end else SHORT), pos
    return SHORT, pos


@njit(cache=True)
def _levels_fit(norms, bits, starts, row):
    """No level follows a norm that is zero or not a number."""
    for b in range(norms.size):
        if means_no_levels(norms[b], bits):
            for j in range(starts[b], starts[b + 1]):
                if row[j] != 0:
                    return False
    return True
