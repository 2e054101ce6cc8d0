"""The Elias omega code of integers and ascending indices, and levels in it, the code "elias".

Integers are from 1 to 2**63 - 1 (P. Elias, 1975). With B(n) the binary digits of n, and |B(n)|
their number,

    omega(n) = "0" for n = 1; else omega(|B(n)| - 1) without its last bit, then B(n), then "0".

No code word is the beginning of another, and each integer has one. A code word ends with a zero,
so at most 7 ones after the last code word, which pad a message to bytes, are never taken for
another one: a message needs no count. Indices travel as their gaps, omega(index - previous index),
where the index before the first is -1.

Tables for small numbers are computed with NumPy when the package is imported:

* `OMEGA[n]`, 1 <= n < SMALL: code word << 5 | its length (at most 19 bits).
* `TRIPLE[window]`: one (gap, sign, level) within the next TRIPLE_BITS bits, as omega(gap), a sign
  bit, omega(|level|): bits used (4 bits), gap (8 bits), level + 128 (8 bits); 0 if it is longer.

The message of a worker is its norms (one for each block of coordinates; one in all by default),
then, for each non-zero level in order of coordinates,

    omega(gap), one sign bit (1: negative), omega(|level|),

with gap = index - previous non-zero index (index + 1 for the first), and ones up to the next byte
(QSGD's Code_s, Alistarh et al. 2017; as charged in the smoothness-aware quantization paper). There
is no count: at most 7 ones are no such triple, because omega words end with a zero.

The functions `encode` and `decode` are those that `mpisim.wire.codecs` describes.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numba import njit

from mpisim.wire.codecs import bits as buffer

SMALL = 4096
TRIPLE_BITS = 12


def _omega_words() -> np.ndarray:
    table = np.zeros(SMALL, np.int64)
    table[1] = 1  # word "0", length 1
    for digits in range(2, SMALL.bit_length()):
        prefix = table[digits - 1]  # without its last bit: word >> 6, length - 1
        n = np.arange(1 << (digits - 1), 1 << digits)
        word = ((prefix >> 6) << digits | n) << 1
        table[n] = word << 5 | ((prefix & 31) + digits)
    return table


def _triples() -> np.ndarray:
    """A triple stands wherever the window begins with it; it has numbers of 15 at most."""
    table = np.zeros(1 << TRIPLE_BITS, np.int64)
    for gap, size, negative in product(range(1, 16), range(1, 16), (0, 1)):
        (first, gap_bits), (second, level_bits) = (divmod(int(OMEGA[n]), 32) for n in (gap, size))
        bits = gap_bits + 1 + level_bits
        if bits <= TRIPLE_BITS:
            word, rest = (first << 1 | negative) << level_bits | second, TRIPLE_BITS - bits
            level = -size if negative else size
            table[word << rest : (word + 1) << rest] = (level + 128) << 12 | gap << 4 | bits
    return table


OMEGA = _omega_words()
TRIPLE = _triples()


@njit(cache=True)
def omega_bits(n):
    """Length of omega(n), n >= 1."""
    if n < SMALL:
        return np.int64(OMEGA[n] & 31)
    length = buffer.bit_length(n)
    return length + np.int64(OMEGA[length - 1] & 31)


@njit(cache=True, forceinline=True)
def put_omega(words, pos, n):
    """Write omega(n), n >= 1; returns the new position."""
    if n < SMALL:
        return buffer.put(words, pos, OMEGA[n] >> 5, np.int64(OMEGA[n] & 31))
    length = buffer.bit_length(n)
    prefix = OMEGA[length - 1]
    pos = buffer.put(words, pos, prefix >> 6, np.int64(prefix & 31) - 1)
    pos = buffer.put(words, pos, n, length)
    return buffer.put(words, pos, 0, 1)


@njit(cache=True)
def read_omega(words, pos, end):
    """(n, new position), or (status, position) where the bits before ``end`` hold no omega(n)."""
    n = np.int64(1)
    while pos < end:
        window = buffer.peek(words, pos)
        if window >> np.uint64(63) == 0:
            return n, pos + 1
        if n > 62:
            return buffer.LARGE, pos
        pos += n + 1
        n = np.int64(window >> np.uint64(63 - n))
    return buffer.SHORT, pos


@njit(cache=True)
def gap_bits(row):
    """Length of the gap code of ``row`` (ascending)."""
    bits, last = 0, -1
    for j in row:
        bits += omega_bits(j - last)
        last = j
    return bits


@njit(cache=True)
def put_gaps(words, pos, row):
    """Write the gaps of ``row``; returns the new position."""
    last = -1
    for j in row:
        pos = put_omega(words, pos, j - last)
        last = j
    return pos


@njit(cache=True)
def read_gaps(words, pos, end, row, d):
    """Fill ``row`` with ascending indices below d; returns the new position or a status."""
    last = -1
    for t in range(row.size):
        gap, pos = read_omega(words, pos, end)
        if gap < 1:
            return gap
        if gap >= d - last:
            return buffer.RANGE
        last += gap
        row[t] = last
    return pos


# levels


@njit(cache=True)
def encode(norms, bits, levels, limits, s, starts, payload):
    m, d = levels.shape
    words = buffer.new_words(_most_bits(levels) + m * (norms.shape[1] * bits + 7))
    where = np.empty(d + 1, np.int64)
    pos = 0
    for i in range(m):
        start, last = pos, -1
        pos = buffer.put_all(words, pos, norms[i], bits)
        row = levels[i]
        for t in range(nonzeros(row, where)):
            j = where[t]
            pos = _put_triple(words, pos, j - last, np.int64(row[j]))
            last = j
        payload[i] = pos - start
        pos = buffer.pad(words, pos)
    return buffer.to_bytes(words, pos // 8)


@njit(cache=True)
def nonzeros(row, where):
    """How many levels are not zero; ``where`` (d,) then begins with their indices.

    Without a branch that could be mispredicted.
    """
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
    return count * (omega_bits(max(1, levels.shape[1])) + 1 + omega_bits(top))


@njit(cache=True, forceinline=True)
def _put_triple(words, pos, gap, level):
    size, negative = abs(level), int(level < 0)
    if (gap | size) < SMALL:  # one word of at most 39 bits
        first, second = OMEGA[gap], OMEGA[size]
        length = second & 31
        word = ((first >> 5 << 1) | negative) << length | second >> 5
        return buffer.put(words, pos, word, (first & 31) + 1 + length)
    pos = buffer.put(words, put_omega(words, pos, gap), negative, 1)
    return put_omega(words, pos, size)


@njit(cache=True)
def decode(data, sizes, bits, limits, s, starts, norms, levels, payload):
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
        entry = TRIPLE[buffer.peek(words, pos) >> np.uint64(64 - TRIPLE_BITS)]
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
    gap, pos = read_omega(words, pos, end)
    if gap < 1 or pos >= end:
        return min(gap, buffer.SHORT), 0, pos
    negative = buffer.take(words, pos, 1) == 1
    level, pos = read_omega(words, pos + 1, end)
    if level < 1:
        return level, 0, pos
    return gap, (-level if negative else level), pos
