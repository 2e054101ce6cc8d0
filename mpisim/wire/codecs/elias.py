"""Levels in Elias omega codes, the code "elias", and the values that levels mean.

The message of a worker is its norms (one for each block of coordinates; one in all by default),
then, for each non-zero level in order of coordinates,

    omega(gap), one sign bit (1: negative), omega(|level|),

with gap = index - previous non-zero index (index + 1 for the first), and ones up to the next byte
(QSGD's Code_s, Alistarh et al. 2017; as charged in the smoothness-aware quantization paper). There
is no count: at most 7 ones are no such triple, because omega words end with a zero.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.wire.codecs.bits import (
    EMPTY,
    LEVEL,
    RANGE,
    SHORT,
    is_padding,
    load,
    pad,
    peek,
    put,
    store,
    take,
)
from mpisim.wire.codecs.omega import omega_bits, put_omega, read_omega
from mpisim.wire.codecs.omega_tables import OMEGA, SMALL, TRIPLE, TRIPLE_BITS


@njit(cache=True)
def _nonzeros(row, where):
    """Indices of the non-zero levels, without a branch that could be mispredicted."""
    count = 0
    for j in range(row.size):
        where[count] = j
        count += row[j] != 0
    return count


@njit(cache=True)
def triple_bits(levels):
    """Bits of all triples of each worker, shape (m,), int64."""
    m, d = levels.shape
    bits = np.zeros(m, np.int64)
    where = np.empty(d + 1, np.int64)
    for i in range(m):
        last, total = -1, 0
        for t in range(_nonzeros(levels[i], where)):
            j = where[t]
            total += omega_bits(j - last) + 1 + omega_bits(abs(np.int64(levels[i, j])))
            last = j
        bits[i] = total
    return bits


@njit(cache=True)
def encode(norms, bits, levels, payload, sizes):
    """The bytes of all messages of a block, uint8; ``norms``, ``bits``, ``payload`` as of `write`.

    Fills ``sizes`` (m,) with the bytes of each message.
    """
    m, blocks = norms.shape
    words = np.empty((most_bits(levels) + m * (blocks * bits + 7)) // 64 + 3, np.uint64)
    words[0] = 0
    end = write(words, norms, bits, levels, payload)
    for i in range(m):
        sizes[i] = (payload[i] + 7) // 8
    return store(words, end // 8)


@njit(cache=True)
def decode(data, sizes, bits, limits, starts, norms, levels, payload):
    """`read` from bytes."""
    words = np.empty(data.size // 8 + 3, np.uint64)
    load(data, words)
    return read(words, sizes, bits, limits, starts, norms, levels, payload)


@njit(cache=True)
def most_bits(levels):
    """An upper bound for the bits of all triples of the block together, int64."""
    count, top = 0, np.int64(1)
    for i in range(levels.shape[0]):
        for level in levels[i]:
            count += level != 0
            size = abs(np.int64(level))
            top = size if size > top else top
    return count * (omega_bits(max(1, levels.shape[1])) + 1 + omega_bits(top))


@njit(cache=True)
def write(words, norms, bits, levels, payload):
    """All messages of a block; ``norms``: shape (m, B), uint64, their ``bits`` low bits.

    Fills ``payload`` (m,) with the bits of each message; returns all bits, padding included.
    """
    m, d = levels.shape
    where = np.empty(d + 1, np.int64)
    pos = 0
    for i in range(m):
        start, last = pos, -1
        for norm in norms[i]:
            pos = put(words, pos, norm, bits)
        row = levels[i]
        for t in range(_nonzeros(row, where)):
            j = where[t]
            pos = _put_triple(words, pos, j - last, np.int64(row[j]))
            last = j
        payload[i] = pos - start
        pos = pad(words, pos)
    return pos


@njit(cache=True)
def _put_triple(words, pos, gap, level):
    size, negative = abs(level), int(level < 0)
    if (gap | size) < SMALL:  # one word of at most 39 bits
        first, second = OMEGA[gap], OMEGA[size]
        length = second & 31
        word = ((first >> 5 << 1) | negative) << length | second >> 5
        return put(words, pos, word, (first & 31) + 1 + length)
    pos = put(words, put_omega(words, pos, gap), negative, 1)
    return put_omega(words, pos, size)


@njit(cache=True)
def read(words, sizes, bits, limits, starts, norms, levels, payload):
    """All messages of a block into ``norms``, ``levels`` (zero before) and ``payload`` (bits).

    sizes : bytes of each message, shape (m,); limits : shape (1 or m, 1 or d).

    Returns (worker, status); a status below 0 says why the worker's bytes are no message.
    """
    empty = np.empty(norms.shape[1], np.bool_)
    end = 0
    for i in range(levels.shape[0]):
        pos, end = end, end + 8 * sizes[i]
        if end - pos < norms.shape[1] * bits:
            return i, SHORT
        for b in range(norms.shape[1]):
            norms[i, b] = take(words, pos, bits)
            empty[b] = means_no_levels(norms[i, b], bits)
            pos += bits
        own = limits[min(i, limits.shape[0] - 1)]
        pos = _read_triples(words, pos, end, own, starts, empty, levels[i])
        if pos < 0:
            return i, pos
        payload[i] = pos - (end - 8 * sizes[i])
    return 0, 0


@njit(cache=True)
def means_no_levels(norm, bits):
    """Zero, or an exponent of ones only: NaN."""
    exponent = 0xFF if bits == 32 else 0x7FF
    digits = 23 if bits == 32 else 52
    return norm == 0 or (norm >> np.uint64(digits)) & np.uint64(exponent) == np.uint64(exponent)


@njit(cache=True)
def _read_triples(words, pos, end, limits, starts, empty, row):
    j, block = -1, 0
    stride = int(limits.size > 1)  # limits of this worker: one, or one for each coordinate
    while not is_padding(words, pos, end):
        entry = TRIPLE[peek(words, pos) >> np.uint64(64 - TRIPLE_BITS)]
        if entry:
            gap, level = (entry >> 4) & 255, (entry >> 12) - 128
            pos += entry & 15
        else:
            gap, level, pos = _read_triple(words, pos, end)
            if gap < 1:
                return gap
        if pos > end:
            return SHORT
        if gap >= row.size - j:
            return RANGE
        j += gap
        if abs(level) > limits[j * stride]:
            return LEVEL
        while starts[block + 1] <= j:
            block += 1
        if empty[block]:
            return EMPTY
        row[j] = level
    return pos


@njit(cache=True)
def _read_triple(words, pos, end):
    gap, pos = read_omega(words, pos, end)
    if gap < 1 or pos >= end:
        return min(gap, SHORT), 0, pos
    negative = take(words, pos, 1) == 1
    level, pos = read_omega(words, pos + 1, end)
    if level < 1:
        return level, 0, pos
    return gap, (-level if negative else level), pos


@njit(cache=True, error_model="numpy")
def _row(out, norms, levels, s, starts):
    """out[j] = norm * (level / s), the one formula for the value of a level."""
    for b in range(norms.size):
        if s.size == 1:
            for j in range(starts[b], starts[b + 1]):
                out[j] = norms[b] * (levels[j] / s[0])
        else:
            for j in range(starts[b], starts[b + 1]):
                out[j] = norms[b] * (levels[j] / s[j])


@njit(cache=True, error_model="numpy")
def set_values(out, norms, levels, s, starts):
    """The values of all workers, shape (m, d); ``s``: shape (1 or m, 1 or d)."""
    for i in range(levels.shape[0]):
        _row(out[i], norms[i], levels[i], s[min(i, s.shape[0] - 1)], starts)


@njit(cache=True, error_model="numpy")
def add_values(total, norms, levels, s, starts):
    """total (d,) += the values of worker 0, 1, ..."""
    row = np.empty_like(total)
    for i in range(levels.shape[0]):
        _row(row, norms[i], levels[i], s[min(i, s.shape[0] - 1)], starts)
        for j in range(total.size):
            total[j] += row[j]
