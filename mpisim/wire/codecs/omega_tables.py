"""Tables for small Elias omega numbers, computed once with NumPy when the package is imported.

* `OMEGA[n]`, 1 <= n < SMALL: code word << 5 | its length (at most 19 bits).
* `TRIPLE[window]`: one (gap, sign, level) within the next TRIPLE_BITS bits, as omega(gap), a sign
  bit, omega(|level|): bits used (4 bits), gap (8 bits), level + 128 (8 bits); 0 if it is longer.
"""

from __future__ import annotations

import numpy as np

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
