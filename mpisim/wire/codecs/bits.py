"""Bits in a buffer, most significant bit first, for use inside compiled kernels.

A buffer is an array of 64-bit words; a place in it is a bit position. `put` and `peek` move up to
64 bits with two memory accesses and no branch, so a coder is a plain loop over positions. Buffers
end with two spare words, so that peeking near the end stays inside; what was read is valid only if
the position reached is not beyond the end of the message, and every reader checks that.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.core.errors import WireError

# What a kernel returns instead of a position when the bytes are not a message.
SHORT, LARGE, RANGE, PADDING, LEVEL, EMPTY, CHOICE = -1, -2, -3, -4, -5, -6, -7
REASONS = {
    SHORT: "it ends inside a number",
    LARGE: "a number is too large",
    RANGE: "an index is out of range",
    PADDING: "its padding is not all ones",
    LEVEL: "a level is above the allowed maximum",
    EMPTY: "levels follow a norm that is zero or not a number",
    CHOICE: "its indices are not in the shorter of the two codes",
}


# parsed once: a type from its name takes a microsecond
UNSIGNED = {size: np.dtype(f"u{size}") for size in (4, 8)}
HIGHEST_FIRST = np.dtype(">u8")


def fail(worker: int, status: int) -> WireError:
    """The error for the message of ``worker`` (counted within the block)."""
    return WireError(f"message {worker} of the block is not valid: {REASONS[status]}")


def new_words(bits: int) -> np.ndarray:
    """A buffer for at least ``bits`` bits, uint64; only its first word is set (to zero)."""
    words = np.empty(bits // 64 + 3, np.uint64)
    words[0] = 0
    return words


def to_bytes(words: np.ndarray, size: int) -> np.ndarray:
    """The first ``size`` bytes of a buffer, shape (size,), uint8."""
    return words[: -(-size // 8)].astype(HIGHEST_FIRST).view(np.uint8)[:size]


def to_words(data: np.ndarray) -> np.ndarray:
    """A buffer with the bytes ``data`` (uint8) and at least 64 zero bits behind them."""
    words = np.empty(data.size // 8 + 3, np.uint64)
    load(np.ascontiguousarray(data), words)
    return words


@njit(cache=True)
def store(words, size):
    """`to_bytes` for kernels."""
    out = np.empty(size, np.uint8)
    for i in range(size // 8):
        word = words[i]
        for j in range(8):
            out[8 * i + j] = word >> np.uint64(56 - 8 * j)
    for j in range(size // 8 * 8, size):
        out[j] = words[j >> 3] >> np.uint64(56 - 8 * (j & 7))
    return out


@njit(cache=True)
def load(data, words):
    """`to_words` for kernels: eight bytes a word, the first one highest, then zeros."""
    whole = data.size // 8
    for i in range(whole):
        word = np.uint64(0)
        for j in range(8):
            word = (word << np.uint64(8)) | np.uint64(data[8 * i + j])
        words[i] = word
    words[whole:] = 0
    for j in range(data.size - 8 * whole):
        words[whole] |= np.uint64(data[8 * whole + j]) << np.uint64(56 - 8 * j)


@njit(cache=True)
def put(words, pos, value, length):
    """Write the ``length`` low bits of ``value`` (1 <= length <= 64, higher bits zero) at ``pos``.

    Writing goes upwards: what lies behind the new position is set to zero. Returns that position.
    """
    word, offset = pos >> 6, pos & 63
    left = np.uint64(value) << np.uint64(64 - length)
    words[word] |= left >> np.uint64(offset)
    words[word + 1] = (left << np.uint64(1)) << np.uint64(63 - offset)
    return pos + length


@njit(cache=True)
def pad(words, pos):
    """Fill with ones up to the next whole byte; returns the new position."""
    spare = -pos & 7
    if spare:
        return put(words, pos, (1 << spare) - 1, spare)
    return pos


@njit(cache=True)
def peek(words, pos):
    """The 64 bits at ``pos``, uint64."""
    word, offset = pos >> 6, pos & 63
    high = words[word] << np.uint64(offset)
    return high | ((words[word + 1] >> np.uint64(1)) >> np.uint64(63 - offset))


@njit(cache=True)
def take(words, pos, length):
    """The ``length`` bits at ``pos`` (1 <= length <= 64) as uint64."""
    return peek(words, pos) >> np.uint64(64 - length)


@njit(cache=True)
def is_padding(words, pos, end):
    """Whether nothing but at most 7 ones lies between ``pos`` and ``end``."""
    spare = end - pos
    if spare == 0:
        return True
    return 0 < spare < 8 and take(words, pos, spare) == np.uint64((1 << spare) - 1)


@njit(cache=True)
def bit_length(n):
    """Number of binary digits of n >= 0 (int64); 0 for 0."""
    length = 0
    for step in (32, 16, 8, 4, 2, 1):
        if n >> step:
            n >>= step
            length += step
    return length + (n > 0)
