"""The Elias omega code of integers from 1 to 2**63 - 1 (P. Elias, 1975), and of ascending indices.

With B(n) the binary digits of n, and |B(n)| their number,

    omega(n) = "0" for n = 1; else omega(|B(n)| - 1) without its last bit, then B(n), then "0".

No code word is the beginning of another, and each integer has one. A code word ends with a zero,
so at most 7 ones behind the last code word, which pad a message to bytes, are never taken for
another one: a message needs no count. Indices travel as their gaps, omega(index - previous index),
where the index before the first is -1.

Tables for small numbers are computed with NumPy when the package is imported:

* `OMEGA[n]`, 1 <= n < SMALL: code word << 5 | its length (at most 19 bits).
* `TRIPLE[window]`: one (gap, sign, level) within the next TRIPLE_BITS bits, as omega(gap), a sign
  bit, omega(|level|): bits used (4 bits), gap (8 bits), level + 128 (8 bits); 0 if it is longer.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.wire.codecs.bits import LARGE, RANGE, SHORT, bit_length, peek, put

SMALL = 4096
TRIPLE_BITS = 12
_OUTSIDE = 64  # the position of a scan that has left its window


def _omega_words() -> np.ndarray:
    table = np.zeros(SMALL, np.int64)
    table[1] = 1  # word "0", length 1
    for digits in range(2, SMALL.bit_length()):
        prefix = table[digits - 1]  # without its last bit: word >> 6, length - 1
        n = np.arange(1 << (digits - 1), 1 << digits)
        word = ((prefix >> 6) << digits | n) << 1
        table[n] = word << 5 | ((prefix & 31) + digits)
    return table


def _scan(window: np.ndarray, pos: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Decode one omega number in each window from ``pos`` on: (numbers, new positions)."""
    n = np.ones_like(window)
    for _ in range(4):
        more = (pos < TRIPLE_BITS) & (_bits(window, pos, 1) == 1)
        after = np.where(more, pos + n + 1, pos)
        n = np.where(more & (after <= TRIPLE_BITS), _bits(window, pos, n + 1), n)
        pos = np.where(after <= TRIPLE_BITS, after, _OUTSIDE)
    return n, np.where(pos < TRIPLE_BITS, pos + 1, _OUTSIDE)


def _bits(window: np.ndarray, pos: np.ndarray, length: np.ndarray | int) -> np.ndarray:
    shift = np.clip(TRIPLE_BITS - pos - length, 0, 62)
    return (window >> shift) & ((1 << np.clip(length, 0, 62)) - 1)


def _triples() -> np.ndarray:
    window = np.arange(1 << TRIPLE_BITS)
    gap, pos = _scan(window, np.zeros_like(window))
    negative = _bits(window, pos, 1)
    level, pos = _scan(window, pos + 1)
    signed = np.where(negative == 1, -level, level)
    return np.where(pos <= TRIPLE_BITS, (signed + 128) << 12 | gap << 4 | pos, 0)


OMEGA = _omega_words()
TRIPLE = _triples()


@njit(cache=True)
def omega_bits(n):
    """Length of omega(n), n >= 1."""
    if n < SMALL:
        return np.int64(OMEGA[n] & 31)
    length = bit_length(n)
    return length + np.int64(OMEGA[length - 1] & 31)


@njit(cache=True, forceinline=True)
def put_omega(words, pos, n):
    """Write omega(n), n >= 1; returns the new position."""
    if n < SMALL:
        return put(words, pos, OMEGA[n] >> 5, np.int64(OMEGA[n] & 31))
    length = bit_length(n)
    prefix = OMEGA[length - 1]
    pos = put(words, pos, prefix >> 6, np.int64(prefix & 31) - 1)
    pos = put(words, pos, n, length)
    return put(words, pos, 0, 1)


@njit(cache=True)
def read_omega(words, pos, end):
    """(n, new position), or (status, position) where the bits before ``end`` hold no omega(n)."""
    n = np.int64(1)
    while pos < end:
        window = peek(words, pos)
        if window >> np.uint64(63) == 0:
            return n, pos + 1
        if n > 62:
            return LARGE, pos
        pos += n + 1
        n = np.int64(window >> np.uint64(63 - n))
    return SHORT, pos


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
            return RANGE
        last += gap
        row[t] = last
    return pos
