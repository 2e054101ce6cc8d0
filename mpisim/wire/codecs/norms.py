"""Which levels a norm and a limit allow."""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.wire.codecs.buffer import EMPTY, LEVEL


@njit(cache=True)
def means_no_levels(norm, bits):
    """Whether a float of ``bits`` (32 or 64) bits is zero, or NaN or infinite."""
    exponent = 0xFF if bits == 32 else 0x7FF
    digits = 23 if bits == 32 else 52
    return norm == 0 or (norm >> np.uint64(digits)) & np.uint64(exponent) == np.uint64(exponent)


@njit(cache=True)
def check_levels(norms, bits, limits, starts, row):
    """LEVEL or EMPTY where ``norms`` (B,) and ``limits`` (1,) or (d,) forbid the levels, else 0."""
    stride = int(limits.size > 1)
    for b in range(norms.size):
        empty = means_no_levels(norms[b], bits)
        for j in range(starts[b], starts[b + 1]):
            if abs(row[j]) > limits[j * stride]:
                return LEVEL
            if empty and row[j] != 0:
                return EMPTY
    return 0
