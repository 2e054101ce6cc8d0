"""Levels as in Appendix E.1 of the smoothness-aware quantization paper, the code "e1".

The message of a worker is its norms without their sign bits (31 bits each with float32 on the
wire), then, for each stretch of at most 1024 coordinates, of d' coordinates with k non-zero levels:

    k, in as many bits as d' has binary digits;
    the rank of the set of non-zero levels among all sets of k, in ceil(log2 C(d', k)) bits;
    k sign bits (1: negative);
    each |level| as |level| - 1 ones and a zero;

and ones up to the next byte. For d <= 1024 that is the paper's 31 + log d + log C(d, n0) + signs +
levels. Longer vectors are cut, as ranks are numbers of up to d bits and would take quadratic time.

The functions `payload_bits`, `encode` and `decode` are those of a `mpisim.wire.codecs.Codec`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.wire.codecs import buffer
from mpisim.wire.codecs.combinations import (
    DIGITS,
    LONGEST,
    at_least,
    choose,
    rank_bits,
    set_places,
    set_rank,
)
from mpisim.wire.codecs.norms import check_levels


@njit(cache=True)
def payload_bits(norms, bits, levels):
    m, d = levels.shape
    payload = np.full(m, norms.shape[1] * (bits - 1), np.int64)
    number = np.empty(DIGITS, np.uint64)
    for i in range(m):
        for start in range(0, d, LONGEST):
            row = levels[i, start : start + LONGEST]
            k = 0
            for level in row:
                k += level != 0
                payload[i] += abs(np.int64(level))
            width = rank_bits(number, choose(number, row.size, k))
            payload[i] += buffer.bit_length(row.size) + k + width
    return payload


@njit(cache=True)
def encode(norms, bits, levels, payload):
    m, d = levels.shape
    payload[:] = payload_bits(norms, bits, levels)
    words = buffer.new_words((payload + 7).sum())
    number, rank = np.empty(DIGITS, np.uint64), np.empty(DIGITS, np.uint64)
    pos = 0
    for i in range(m):
        pos = buffer.put_all(words, pos, norms[i], bits - 1)
        for start in range(0, d, LONGEST):
            pos = _write_stretch(words, pos, levels[i, start : start + LONGEST], number, rank)
        pos = buffer.pad(words, pos)
    return buffer.to_bytes(words, pos // 8)


@njit(cache=True)
def _write_stretch(words, pos, row, number, rank):
    k = 0
    for level in row:
        k += level != 0
    pos = buffer.put(words, pos, k, buffer.bit_length(row.size))
    width = rank_bits(number, choose(number, row.size, k))
    set_rank(row, k, number, rank)
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
def decode(data, sizes, bits, limits, starts, norms, levels, payload):
    words = buffer.to_words(data)
    number, rank = np.empty(DIGITS, np.uint64), np.empty(DIGITS, np.uint64)
    end = 0
    for i in range(levels.shape[0]):
        first, end = end, end + 8 * sizes[i]
        if end - first < norms.shape[1] * (bits - 1):
            return i, buffer.SHORT
        pos = buffer.take_all(words, first, norms[i], bits - 1)
        own = limits[min(i, limits.shape[0] - 1)]
        for start in range(0, levels.shape[1], LONGEST):
            row = levels[i, start : start + LONGEST]
            most = own[start : start + LONGEST] if own.size > 1 else own
            pos = _read_stretch(words, pos, end, row, most, number, rank)
            if pos < 0:
                return i, pos
        if not buffer.is_padding(words, pos, end):
            return i, buffer.PADDING
        status = check_levels(norms[i], bits, own, starts, levels[i])
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
