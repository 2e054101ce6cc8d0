"""The Elias omega code of integers from 1 to 2**63 - 1 (P. Elias, 1975).

With B(n) the binary digits of n, and |B(n)| their number,

    omega(n) = "0" for n = 1; else omega(|B(n)| - 1) without its last bit, then B(n), then "0".

No code word is the beginning of another, and each integer has one. A code word ends with a zero,
so at most 7 ones behind the last code word, which pad a message to bytes, are never taken for
another one: a message needs no count.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.wire.codecs.bits import LARGE, SHORT, bit_length, peek, put
from mpisim.wire.codecs.omega_tables import OMEGA, SMALL


@njit(cache=True)
def omega_bits(n):
    """Length of omega(n), n >= 1."""
    if n < SMALL:
        return np.int64(OMEGA[n] & 31)
    length = bit_length(n)
    return length + np.int64(OMEGA[length - 1] & 31)


@njit(cache=True)
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
