"""Classes of levels, of which there are few enough to count how often each occurs.

|level| has class |level| below 16. For 2^e <= |level| < 2^(e+1), e >= 4, it has class 12 + e, and
its e lower digits are kept as they are. These digits and the sign are a level's details.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.wire.codecs.buffer import RANGE, bit_length, put, put_all, take, take_all
from mpisim.wire.codecs.omega import omega_bits, put_omega, read_omega

PLAIN = 16  # levels below have a class each
CLASSES = PLAIN + 60


@njit(cache=True)
def classify(row, classes, counts):
    """Fill ``classes`` (d,) for the levels ``row``, and ``counts`` (CLASSES,), zero before."""
    for j in range(row.size):
        size = abs(np.int64(row[j]))
        kind = size if size < PLAIN else np.int64(PLAIN - 5 + bit_length(size))
        classes[j] = kind
        counts[kind] += 1


@njit(cache=True)
def _digits(kind):
    """How many lower digits of a level of this class are kept."""
    return 0 if kind < PLAIN else kind - PLAIN + 4


@njit(cache=True)
def detail_bits(counts):
    """Bits of the details of all levels."""
    bits = 0
    for kind in range(1, counts.size):
        bits += counts[kind] * (1 + _digits(kind))
    return bits


@njit(cache=True)
def put_details(words, norms, bits, row, classes):
    """Write a one, the norms (B,) and all details; returns the number of bits."""
    pos = put_all(words, put(words, 0, 1, 1), norms, bits)
    for j in range(row.size):
        if row[j] != 0:
            pos = put(words, pos, int(row[j] < 0), 1)
            width = _digits(np.int64(classes[j]))
            if width > 0:
                pos = put(words, pos, abs(np.int64(row[j])) ^ (1 << width), width)
    return pos


@njit(cache=True)
def take_details(words, norms, bits, row, classes):
    """Fill ``norms`` (B,) and the levels ``row`` (d,), zero before."""
    pos = take_all(words, 1, norms, bits)
    for j in range(row.size):
        kind = np.int64(classes[j])
        if kind > 0:
            negative = take(words, pos, 1) == 1
            pos += 1
            size, width = kind, _digits(kind)
            if width > 0:
                size = np.int64(take(words, pos, width)) | (1 << width)
                pos += width
            row[j] = -size if negative else size


@njit(cache=True)
def count_bits(counts):
    """Bits of what `put_counts` writes."""
    bits = omega_bits(counts.size)
    for count in counts[1:]:
        bits += omega_bits(count + 1)
    return bits


@njit(cache=True)
def put_counts(words, counts):
    """Write how many classes there are, and all counts but that of class 0; returns the bits."""
    pos = put_omega(words, 0, counts.size)
    for count in counts[1:]:
        pos = put_omega(words, pos, count + 1)
    return pos


@njit(cache=True)
def read_counts(words, end, d, counts):
    """Fill ``counts`` (CLASSES,), zero before; ``d`` is their sum, which gives that of class 0.

    Returns (number of classes, position), or (status, position).
    """
    kinds, pos = read_omega(words, 0, end)
    if kinds < 1 or kinds > counts.size:
        return (kinds if kinds < 1 else RANGE), pos
    left = np.int64(d)
    for kind in range(1, kinds):
        count, pos = read_omega(words, pos, end)
        if count < 1 or count - 1 > left:
            return (count if count < 1 else RANGE), pos
        counts[kind] = count - 1
        left -= count - 1
    if kinds > 1 and counts[kinds - 1] == 0:
        return RANGE, pos
    counts[0] = left
    return kinds, pos
