"""Heads of messages of exponents or levels: which model suits the symbols, in few bits.

Symbol 0 is zero, and 1 to 255 have a sign; 256 is NaN, without one. A model is a row of
`mpisim.wire.codecs.priors`, which either stays or is followed by the counts of the symbols; then it
counts for 2^strength coordinates. A head holds

* of exponents, the median of those with a sign (6 bits from 2^-24 to 2^7, else 9), the tail (2
  bits; below TAILED coordinates one), the quarter of an octave (2 bits), whether there are zeros
  and whether the row stays (1 to 3 bits), and the share of zeros (3 bits, if there are any);
* of levels, the tail (2 bits; up to level 2 one, of points none), and the scale in half octaves: 1
  bit where it is the expected one, 3 bits where it is next to it, else 7;
* for exponents that do not stay, from SHORT coordinates on, and for levels, from SHORT on or of
  fewer than FEW kinds from LONG on, the strength, and whether the halves of the message differ (2
  bits); for shorter messages of FEW levels or more, whether the row stays (1 bit).

A head follows from the symbols, and readers check it. Only integers and the basic operations of
floats are used, so all machines choose alike.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.wire.codecs import bits as buffer
from mpisim.wire.codecs.priors import OFFSETS, REACH, SCALES, WEIGHT_BITS

NAN = 256
SYMBOLS = 257
SHORT, LONG = 512, 2048  # coordinates
FEW = 8  # symbols
STAYS = 0
STRENGTHS = (9, 6, 9, STAYS)  # powers of two; the first one with short stretches
UNEVEN = 0  # where the halves of a message differ
WORDS, LENGTHS = (0, 2, 6, 7), (1, 2, 3, 3)  # of: has zeros + 2 * does not stay
WINDOW, COARSE = 32, 4  # scales around the expected one that are tried; every so many of them first
TAILED = 64  # coordinates from which on exponents have all tails
USUAL = 103  # the lowest of 32 medians that take fewer bits


@njit(cache=True)
def head_of(counts, half, d, weights, costs, kinds, expected):
    """(head, bits, prior, index in STRENGTHS) of a message of d symbols.

    counts, half : of its symbols, and of the first d // 2 of them (from SHORT on), (SYMBOLS,)
    weights, costs : `mpisim.wire.codecs.priors`
    kinds : all symbols are below
    expected : the expected scale of levels, -1 for exponents
    """
    if expected < 0:
        head, bits, row, first, zeros = _exponents_head(counts, d, costs)
    else:
        head, bits, row, first, zeros = _levels_head(counts, costs, expected)
    prior = _prior(weights[row], first, zeros, kinds)
    index = _strength(counts, half, prior, d, kinds)
    if expected < 0:
        choice = int(zeros > 0) + 2 * int(STRENGTHS[index] != STAYS)
        head, bits = head << LENGTHS[choice] | WORDS[choice], bits + LENGTHS[choice]
        if zeros > 0:
            head, bits = head << 3 | zeros - 1, bits + 3
    elif d < SHORT and kinds >= FEW:
        head, bits = head << 1 | int(STRENGTHS[index] != STAYS), bits + 1
    elif d < LONG and kinds < FEW:
        index = 3
    if _has_strength(d, kinds) and (expected >= 0 or STRENGTHS[index] != STAYS):
        head, bits = head << 2 | index, bits + 2
    return head, bits, prior, index


@njit(cache=True)
def read_head(buffered, pos, d, weights, kinds, expected):
    """(position, prior, index) as in `head_of`; ends up to 19 bits further."""
    zeros = np.int64(-1)
    if expected < 0:
        pos, row, first = _read_exponents_head(buffered, pos, d)
        start = np.int64(buffer.take(buffered, pos, 6))
        choice = 0 if start < 32 else 1 if start < 48 else 2 + (start >> 3 & 1)
        adapts, zeros, pos = choice > 1, np.int64(0), pos + LENGTHS[choice]
        if choice & 1:
            zeros, pos = 1 + np.int64(buffer.take(buffered, pos, 3)), pos + 3
    else:
        pos, row, first = _read_levels_head(buffered, pos, weights, expected)
        adapts = _has_strength(d, kinds)
        if d < SHORT and kinds >= FEW:
            adapts, pos = buffer.take(buffered, pos, 1) == 1, pos + 1
    # another row is refused in the end, as its head is not that of the symbols
    row = max(0, min(row, weights.shape[0] - 1))
    index = np.int64((1 if d < SHORT else 2) if adapts else 3)
    if adapts and _has_strength(d, kinds):
        index, pos = np.int64(buffer.take(buffered, pos, 2)), pos + 2
    return pos, _prior(weights[row], first, zeros, kinds), index


@njit(cache=True, forceinline=True)
def _has_strength(d, kinds):
    """Whether the message is so long that its row may count for one of several numbers."""
    return d >= (SHORT if kinds >= FEW else LONG)


@njit(cache=True)
def _exponents_head(counts, d, costs):
    """(head, bits, row, symbol of the row's first column, eighths of zeros)."""
    half, median = (counts[1:NAN].sum() + 1) // 2, 0
    while half > 0:
        median += 1
        half -= counts[median]
    row = _best_row(counts, costs, median - REACH, 1 << _row_bits(d), 0, 1)
    usual = 0 <= median - USUAL < 32
    head, bits = (median - USUAL, 6) if usual else (256 | median, 9)
    zeros = (counts[0] > 0) * (1 + 8 * (counts[0] - 1) // d)
    row_bits = _row_bits(d)
    return head << row_bits | row, bits + row_bits, row, median - REACH, zeros


@njit(cache=True, forceinline=True)
def _row_bits(d):
    """Bits of the tail and the quarter."""
    return 3 if d < TAILED else 4


@njit(cache=True)
def _read_exponents_head(buffered, pos, d):
    if buffer.take(buffered, pos, 1):
        median, pos = np.int64(buffer.take(buffered, pos + 1, 8)), pos + 9
    else:
        median, pos = USUAL + np.int64(buffer.take(buffered, pos + 1, 5)), pos + 6
    row_bits = _row_bits(d)
    return pos + row_bits, np.int64(buffer.take(buffered, pos, row_bits)), median - REACH


@njit(cache=True)
def _levels_head(counts, costs, expected):
    """As `_exponents_head`; levels have their zeros in the rows: -1."""
    tails, low = costs.shape[0] // SCALES, _lowest(expected)
    row = _best_row(counts, costs, np.int64(0), tails, low, low + WINDOW)
    scale, tail = row // tails, row % tails
    above = scale - expected + OFFSETS[tail]
    head, bits = (3 << 5 | scale - low, 7) if abs(above) > 1 else (9 + above >> 1, 3)
    if above == 0:
        head, bits = 0, 1
    return tail << bits | head, bits + (tails >> 1), row, np.int64(0), np.int64(-1)


@njit(cache=True)
def _read_levels_head(buffered, pos, weights, expected):
    tails, tail = weights.shape[0] // SCALES, np.int64(0)
    if tails > 1:
        tail, pos = np.int64(buffer.take(buffered, pos, tails >> 1)), pos + (tails >> 1)
    start, scale = np.int64(buffer.take(buffered, pos, 7)), expected - OFFSETS[tail]
    if start < 64:
        pos += 1
    elif start < 96:
        scale, pos = scale + (start >> 4 & 1) * 2 - 1, pos + 3
    else:
        scale, pos = _lowest(expected) + (start & 31), pos + 7
    return pos, scale * tails + tail, np.int64(0)


@njit(cache=True, forceinline=True)
def _lowest(expected):
    """The lowest of the WINDOW scales around the expected one."""
    return max(0, min(expected - WINDOW // 2, SCALES - WINDOW))


@njit(cache=True)
def _best_row(counts, costs, first, tails, low_scale, high_scale):
    """The row of ``costs`` that suits ``counts``, whose symbol ``first`` is in column 0.

    Row scale * tails + tail, low_scale <= scale < high_scale. Of the first tail every COARSE-th
    scale is tried; then, of each tail, those next to the best.
    """
    low, high = max(0, first), min(NAN, first + costs.shape[1])
    while low < high and counts[low] == 0:
        low += 1
    while low < high and counts[high - 1] == 0:
        high -= 1
    counts, costs = counts[low:high], costs[:, low - first :]
    at, least = low_scale, _cost(counts, costs[low_scale * tails])
    for scale in range(low_scale + COARSE, high_scale, COARSE):
        cost = _cost(counts, costs[scale * tails])
        if cost < least:
            at, least = scale, cost
    best = at * tails
    for tail in range(tails):
        cost = _cost(counts, costs[at * tails + tail])
        for step in (-1, 1):
            while low_scale <= at + step < high_scale:
                other = _cost(counts, costs[(at + step) * tails + tail])
                if other >= cost:
                    break
                at, cost = at + step, other
        if cost < least:
            best, least = at * tails + tail, cost
    return best


@njit(cache=True, forceinline=True)
def _cost(counts, costs):
    cost = np.int64(0)
    for s in range(counts.size):
        cost += counts[s] * costs[s]
    return cost


@njit(cache=True)
def _prior(weights, first, zeros, kinds):
    """Weights of symbols, also of a row's beyond kinds; ``zeros``: eighths, -1 for levels."""
    prior = np.zeros(max(kinds, weights.size), np.int64)
    share = (2 * zeros - 1) << (WEIGHT_BITS - 4) if zeros > 0 else 0
    for s in range(max(0, first), min(NAN, first + weights.size)):
        prior[s] = weights[s - first] * ((1 << WEIGHT_BITS) - share) >> WEIGHT_BITS
    if zeros >= 0:
        prior[0] = share
    return prior


@njit(cache=True)
def _strength(counts, half, prior, d, kinds):
    """The index in STRENGTHS by phi = chi^2 / d - K / d, for K likely symbols.

    Halves are uneven where the chi^2 of both against their mean is above 3 K. The row stays where
    chi^2 is below 5 K / 2, of many kinds only if halves are even; else it counts for about K / phi
    coordinates.
    """
    squares, apart, likely, unlikely = 0.0, 0.0, 0, np.int64(0)
    for s in range(prior.size):
        if 2 * d * prior[s] > 1 << WEIGHT_BITS:
            mean = prior[s] * (d / (1 << WEIGHT_BITS))
            likely += 1
            squares += (counts[s] - mean) ** 2 / mean
        else:
            unlikely += counts[s]
        if d >= SHORT and counts[s] > 0:
            apart += (2 * half[s] - counts[s]) ** 2 / counts[s]
    beyond = squares + unlikely - likely
    uneven = apart > 3 * likely
    if 2 * beyond < 3 * likely and not (uneven and kinds >= FEW):
        return 3
    if uneven:
        return UNEVEN
    return 1 if d < SHORT or likely * d < beyond * (1 << (STRENGTHS[1] + 1)) else 2
