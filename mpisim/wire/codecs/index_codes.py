"""Codes for a set of indices in {0, ..., d-1}, given in ascending order.

* Fixed width: ceil(log2 d) bits each, none for d = 1.
* Gaps: omega(index - previous index), where the index before the first is -1.
"""

from __future__ import annotations

from numba import njit

from mpisim.wire.codecs.buffer import RANGE, SHORT, put, take
from mpisim.wire.codecs.omega import omega_bits, put_omega, read_omega


def fixed_width(d: int) -> int:
    """ceil(log2 d): bits of one index below d."""
    return (d - 1).bit_length()


@njit(cache=True)
def gap_bits(row):
    """Length of the gap code of ``row`` (ascending)."""
    bits, last = 0, -1
    for j in row:
        bits += omega_bits(j - last)
        last = j
    return bits


@njit(cache=True)
def put_fixed(words, pos, row, width):
    """Write ``row`` with ``width`` bits an index; returns the new position."""
    if width > 0:
        for j in row:
            pos = put(words, pos, j, width)
    return pos


@njit(cache=True)
def put_gaps(words, pos, row):
    """Write the gaps of ``row``; returns the new position."""
    last = -1
    for j in row:
        pos = put_omega(words, pos, j - last)
        last = j
    return pos


@njit(cache=True)
def read_fixed(words, pos, end, row, d, width):
    """Fill ``row`` with ascending indices below d; returns the new position or a status."""
    if pos + row.size * width > end:
        return SHORT
    last = -1
    for t in range(row.size):
        j = 0
        if width > 0:
            j = int(take(words, pos, width))
        if j <= last or j >= d:
            return RANGE
        row[t] = last = j
        pos += width
    return pos


@njit(cache=True)
def read_gaps(words, pos, end, row, d):
    """As `read_fixed`, from gaps."""
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
