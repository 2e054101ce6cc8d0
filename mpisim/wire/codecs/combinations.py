"""Sets of k of d places, numbered in the combinatorial number system.

A set j_1 < ... < j_k has the rank sum_t C(j_t, t), from 0 to C(d, k) - 1. Ranks are numbers of up
to d bits: arrays of 32-bit digits in uint64, the lowest first. A ``size`` counts the digits up to
the highest that is not zero.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.wire.codecs.buffer import bit_length

LONGEST = 1024  # places at most
DIGITS = LONGEST // 32 + 2  # of C(1024, 512) times 1024
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
    bits = 32 * (size - 1) + bit_length(top)
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
def set_rank(row, k, number, rank):
    """rank = that of the non-zero places of ``row``; ``number`` is overwritten."""
    rank[:] = 0
    size = choose(number, row.size, k)
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
