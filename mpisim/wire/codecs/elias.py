"""Levels in Elias omega codes, the code "elias".

The message of a worker is its norms (one for each block of coordinates; one in all by default),
then, for each non-zero level in order of coordinates,

    omega(gap), one sign bit (1: negative), omega(|level|),

with gap = index - previous non-zero index (index + 1 for the first), and ones up to the next byte
(QSGD's Code_s, Alistarh et al. 2017; as charged in the smoothness-aware quantization paper). There
is no count: at most 7 ones are no such triple, because omega words end with a zero.

The functions `encode` and `decode` are those of a `mpisim.wire.codecs.Codec`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.wire.codecs import bits as buffer
from mpisim.wire.codecs import omega


@njit(cache=True)
def encode(norms, bits, levels, limits, payload):
    m, d = levels.shape
    words = buffer.new_words(_most_bits(levels) + m * (norms.shape[1] * bits + 7))
    where = np.empty(d + 1, np.int64)
    pos = 0
    for i in range(m):
        start, last = pos, -1
        pos = buffer.put_all(words, pos, norms[i], bits)
        row = levels[i]
        for t in range(_nonzeros(row, where)):
            j = where[t]
            pos = _put_triple(words, pos, j - last, np.int64(row[j]))
            last = j
        payload[i] = pos - start
        pos = buffer.pad(words, pos)
    return buffer.to_bytes(words, pos // 8)


@njit(cache=True)
def _nonzeros(row, where):
    """Indices of the non-zero levels, without a branch that could be mispredicted."""
    count = 0
    for j in range(row.size):
        where[count] = j
        count += row[j] != 0
    return count


@njit(cache=True)
def _most_bits(levels):
    """An upper bound of the bits of all triples of the block together, int64."""
    count, top = 0, np.int64(1)
    for i in range(levels.shape[0]):
        for level in levels[i]:
            count += level != 0
            size = abs(np.int64(level))
            top = size if size > top else top
    return count * (omega.omega_bits(max(1, levels.shape[1])) + 1 + omega.omega_bits(top))


@njit(cache=True, forceinline=True)
def _put_triple(words, pos, gap, level):
    size, negative = abs(level), int(level < 0)
    if (gap | size) < omega.SMALL:  # one word of at most 39 bits
        first, second = omega.OMEGA[gap], omega.OMEGA[size]
        length = second & 31
        word = ((first >> 5 << 1) | negative) << length | second >> 5
        return buffer.put(words, pos, word, (first & 31) + 1 + length)
    pos = buffer.put(words, omega.put_omega(words, pos, gap), negative, 1)
    return omega.put_omega(words, pos, size)


@njit(cache=True)
def decode(data, sizes, bits, limits, starts, norms, levels, payload):
    words = buffer.to_words(data)
    empty = np.empty(norms.shape[1], np.bool_)
    end = 0
    for i in range(levels.shape[0]):
        start, end = end, end + 8 * sizes[i]
        if end - start < norms.shape[1] * bits:
            return i, buffer.SHORT
        pos = buffer.take_all(words, start, norms[i], bits)
        for b in range(norms.shape[1]):
            empty[b] = buffer.means_no_levels(norms[i, b], bits)
        most = limits[min(i, limits.shape[0] - 1)]
        pos = _read_triples(words, pos, end, most, starts, empty, levels[i])
        if pos < 0:
            return i, pos
        payload[i] = pos - start
    return 0, 0


@njit(cache=True)
def _read_triples(words, pos, end, limits, starts, empty, row):
    j, block = -1, 0
    stride = int(limits.size > 1)  # limits of this worker: one, or one for each coordinate
    while not buffer.is_padding(words, pos, end):
        entry = omega.TRIPLE[buffer.peek(words, pos) >> np.uint64(64 - omega.TRIPLE_BITS)]
        if entry:
            gap, level = (entry >> 4) & 255, (entry >> 12) - 128
            pos += entry & 15
        else:
            gap, level, pos = _read_triple(words, pos, end)
            if gap < 1:
                return gap
        if pos > end:
            return buffer.SHORT
        if gap >= row.size - j:
            return buffer.RANGE
        j += gap
        if abs(level) > limits[j * stride]:
            return buffer.LEVEL
        while starts[block + 1] <= j:
            block += 1
        if empty[block]:
            return buffer.EMPTY
        row[j] = level
    return pos


@njit(cache=True)
def _read_triple(words, pos, end):
    gap, pos = omega.read_omega(words, pos, end)
    if gap < 1 or pos >= end:
        return min(gap, buffer.SHORT), 0, pos
    negative = buffer.take(words, pos, 1) == 1
    level, pos = omega.read_omega(words, pos + 1, end)
    if level < 1:
        return level, 0, pos
    return gap, (-level if negative else level), pos
