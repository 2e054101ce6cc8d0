"""Levels as in Appendix E.1 of the smoothness-aware quantization paper, the code "e1".

The message of a worker is its norms without their sign bits (31 bits each with float32 on the
wire), then, for each stretch of at most 1024 coordinates, of d' coordinates with k non-zero levels:

    k, in as many bits as d' has binary digits;
    the rank of the set of non-zero levels among all sets of k, in ceil(log2 C(d', k)) bits;
    k sign bits (1: negative);
    each |level| as |level| - 1 ones and a zero;

and ones up to the next byte. For d <= 1024 that is the paper's 31 + log d + log C(d, n0) + signs +
levels. Longer vectors are cut, as ranks are numbers of up to d bits and would take quadratic time.

The functions `encode` and `decode` are those that `mpisim.wire.codecs` describes.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.core.errors import InputError
from mpisim.wire.codecs import bits as buffer

MOST = 1 << 30  # bits that the levels of a message may take, or 64 for each if these are more
LONGEST = 1024  # places at most
DIGITS = LONGEST // 32 + 2  # of C(1024, 512) times 1024
ALL = np.uint64(0xFFFFFFFF)


def encode(norms, bits, levels, limits, s, starts, payload):
    ones = _unary_bits(levels)
    most, allowed = int(ones.max(initial=0)), max(MOST, 64 * levels.shape[1])
    if most > allowed:
        raise InputError(
            f"compressor.codec: 'e1' takes {most:,} bits for the levels of a message, which it"
            f" writes in unary; allowed: {allowed:,}, so fewer levels, or another codec"
        )
    return _write(norms, bits, levels, int(ones.sum()), payload)


@njit(cache=True)
def _unary_bits(levels):
    """The sum of each worker's levels, shape (m,), float64."""
    ones = np.zeros(levels.shape[0])
    for i in range(ones.size):
        for level in levels[i]:
            ones[i] += abs(np.float64(level))
    return ones


@njit(cache=True)
def _write(norms, bits, levels, ones, payload):
    m, d = levels.shape
    # signs and ranks take at most a bit each for every level, and counts 11 for every stretch
    words = buffer.new_words(ones + m * (norms.shape[1] * bits + 3 * d + 18))
    number, rank = np.empty(DIGITS, np.uint64), np.empty(DIGITS, np.uint64)
    pos = 0
    for i in range(m):
        first = pos
        pos = buffer.put_all(words, pos, norms[i], bits - 1)
        for start in range(0, d, LONGEST):
            pos = _write_stretch(words, pos, levels[i, start : start + LONGEST], number, rank)
        payload[i] = pos - first
        pos = buffer.pad(words, pos)
    return buffer.to_bytes(words, pos // 8)


@njit(cache=True)
def _write_stretch(words, pos, row, number, rank):
    k = 0
    for level in row:
        k += level != 0
    pos = buffer.put(words, pos, k, buffer.bit_length(row.size))
    size = choose(number, row.size, k)
    width = rank_bits(number, size)
    set_rank(row, k, number, size, rank)
    for i in range((width + 31) // 32 - 1, -1, -1):
        pos = buffer.put(words, pos, rank[i], min(32, width - 32 * i))
    for level in row:
        if level != 0:
            pos = buffer.put(words, pos, int(level < 0), 1)
    for level in row:
        ones = abs(np.int64(level)) - 1
        if ones < 0:
            continue
        while ones > 62:
            pos = buffer.put(words, pos, (1 << 62) - 1, 62)
            ones -= 62
        pos = buffer.put(words, pos, (1 << (ones + 1)) - 2, ones + 1)
    return pos


@njit(cache=True)
def decode(data, sizes, bits, limits, s, starts, norms, levels, payload):
    words = buffer.to_words(data)
    number, rank = np.empty(DIGITS, np.uint64), np.empty(DIGITS, np.uint64)
    end = 0
    for i in range(levels.shape[0]):
        first, end = end, end + 8 * sizes[i]
        if end - first < norms.shape[1] * (bits - 1):
            return i, buffer.SHORT
        pos = buffer.take_all(words, first, norms[i], bits - 1)
        limit = limits[min(i, limits.shape[0] - 1)]
        for start in range(0, levels.shape[1], LONGEST):
            row = levels[i, start : start + LONGEST]
            most = limit[start : start + LONGEST] if limit.size > 1 else limit
            pos = _read_stretch(words, pos, end, row, most, number, rank)
            if pos < 0:
                return i, pos
        if not buffer.is_padding(words, pos, end):
            return i, buffer.PADDING
        status = buffer.check_levels(norms[i], bits, limit, starts, levels[i])
        if status < 0:
            return i, status
        payload[i] = pos - first
    return 0, 0


@njit(cache=True)
def _read_stretch(words, pos, end, row, most, number, rank):
    width = buffer.bit_length(row.size)
    if pos + width > end:
        return buffer.SHORT
    k = np.int64(buffer.take(words, pos, width))
    pos += width
    if k > row.size:
        return buffer.RANGE
    size = choose(number, row.size, k)
    width = rank_bits(number, size)
    if pos + width + 2 * k > end:  # a sign and a level take two bits at least
        return buffer.SHORT
    rank[:] = 0
    for i in range((width + 31) // 32 - 1, -1, -1):
        length = min(32, width - 32 * i)
        rank[i] = buffer.take(words, pos, length)
        pos += length
    if at_least(rank, number, size):
        return buffer.RANGE
    set_places(row, k, number, size, rank)
    for j in range(row.size):
        if row[j]:
            row[j] = -1 if buffer.take(words, pos, 1) == 1 else 1
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
        zeros = np.int64(~buffer.peek(words, pos) >> np.uint64(1))
        ones = 63 - buffer.bit_length(zeros)  # 63: all, at least
        level += ones
        pos += ones
        if level > most:
            return buffer.LEVEL, pos
        if ones < 63:
            pos += 1
            return (level if pos <= end else buffer.SHORT), pos
    return buffer.SHORT, pos


# Sets of k of d places, numbered in the combinatorial number system: j_1 < ... < j_k has the rank
# sum_t C(j_t, t), from 0 to C(d, k) - 1. Ranks are numbers of up to d bits: arrays of 32-bit digits
# in uint64, the lowest first. A ``size`` counts the digits up to the highest that is not zero.


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
def choose(number, d, k):
    """number = C(d, k); returns its size."""
    k = min(k, d - k)
    number[0], size = 1, 1
    for i in range(1, k + 1):
        size = _scale(number, size, d - k + i, i)
    return size


@njit(cache=True)
def rank_bits(number, size):
    """ceil(log2 number), number >= 1."""
    top = np.int64(number[size - 1])
    bits = 32 * (size - 1) + buffer.bit_length(top)
    power = (top & (top - 1)) == 0
    for i in range(size - 1):
        power = power and number[i] == 0
    return bits - int(power)


@njit(cache=True)
def at_least(first, second, size):
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
def set_rank(row, k, number, size, rank):
    """rank = that of the k non-zero places of ``row``; ``number`` is C(d', k), overwritten."""
    rank[:] = 0
    j = row.size
    while 0 < k < j:
        size = _scale(number, size, j - k, j)  # C(j - 1, k)
        j -= 1
        if row[j] != 0:
            _add(rank, number, size)
            size = _scale(number, size, k, j - k + 1)  # C(j, k - 1)
            k -= 1


@njit(cache=True)
def set_places(places, k, number, size, rank):
    """places (d',) = 1 where the set of ``rank`` has its k members; ``number`` is C(d', k)."""
    places[:] = 0
    j = places.size
    while 0 < k < j:
        size = _scale(number, size, j - k, j)
        j -= 1
        if at_least(rank, number, size):
            _subtract(rank, number, size)
            places[j] = 1
            size = _scale(number, size, k, j - k + 1)
            k -= 1
    for i in range(k):
        places[i] = 1
