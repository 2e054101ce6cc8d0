"""Bits in a buffer, most significant bit first, for compiled kernels; and the norms among them.

A buffer is an array of 64-bit words, and a position in it counts bits. `put` and `peek` move up to
64 bits with two memory accesses and no branch, so a coder is a plain loop over positions. A call
would take several times as long as they do, so they are always inlined. A buffer ends with two
spare words, so that a read near its end stays inside. What was read is valid only if the position
reached is not beyond the end of the message; every reader checks that.

Norms and scales cross the wire rounded once, and are NaN where they are not finite.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.core.errors import WireError

# What a kernel returns instead of a position when the bytes are not a message.
SHORT, LARGE, RANGE, PADDING, LEVEL, EMPTY, CHOICE, ENTROPY = -1, -2, -3, -4, -5, -6, -7, -8
REASONS = {
    SHORT: "it ends inside a number",
    LARGE: "a number is too large",
    RANGE: "an index is out of range",
    PADDING: "its padding is not all ones",
    LEVEL: "a level is above the allowed maximum",
    EMPTY: "levels follow a norm that is zero or not a number",
    CHOICE: "its indices are not in the shorter of the two codes",
    ENTROPY: "it is no entropy code",
}

# types that are parsed once, because that takes a microsecond
UNSIGNED = {size: np.dtype(f"u{size}") for size in (4, 8)}

# to turn the order of the bytes of a word around: neighbours first, then pairs of them
BYTE_SWAPS = (
    (np.uint64(0x00FF00FF00FF00FF), np.uint64(8)),
    (np.uint64(0x0000FFFF0000FFFF), np.uint64(16)),
)


def check(worker: int, status: int) -> None:
    """`WireError` if ``status`` says that the message of ``worker`` of the block is not valid."""
    if status < 0:
        raise WireError(f"message {worker} of the block is not valid: {REASONS[status]}")


def raw(values: np.ndarray) -> np.ndarray:
    """The bits of floats, as unsigned integers in the same memory."""
    return values.view(UNSIGNED[values.itemsize])


@njit(cache=True)
def bytes_for(bits):
    """Bytes of messages of ``bits`` (m,), int64, each padded to bytes."""
    return (bits + 7) // 8


@njit(cache=True)
def new_words(bits):
    """A buffer for at least ``bits`` bits, uint64; only its first word is set (to zero)."""
    words = np.empty(bits // 64 + 3, np.uint64)
    words[0] = 0
    return words


@njit(cache=True)
def to_bytes(words, size):
    """The first ``size`` bytes of a buffer, shape (size,), uint8."""
    reversed_words = np.empty((size + 7) // 8, np.uint64)
    for i in range(reversed_words.size):
        word = words[i]
        for mask, step in BYTE_SWAPS:
            word = (word & mask) << step | (word >> step) & mask
        reversed_words[i] = word << np.uint64(32) | word >> np.uint64(32)
    return reversed_words.view(np.uint8)[:size]


@njit(cache=True)
def to_words(data):
    """A buffer with the bytes ``data`` (uint8, C order) and at least 64 zero bits after them."""
    full = data.size // 8
    words = np.empty(full + 3, np.uint64)
    for i in range(full):
        word = np.uint64(0)
        for j in range(8):
            word = (word << np.uint64(8)) | np.uint64(data[8 * i + j])
        words[i] = word
    words[full:] = 0
    for j in range(data.size - 8 * full):
        words[full] |= np.uint64(data[8 * full + j]) << np.uint64(56 - 8 * j)
    return words


@njit(cache=True, forceinline=True)
def put(words, pos, value, length):
    """Write the ``length`` low bits of ``value`` (1 <= length <= 64, higher bits zero) at ``pos``.

    Buffers are written from the start on: what lies after the new position is set to zero.
    Returns that position.
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


@njit(cache=True, forceinline=True)
def peek(words, pos):
    """The 64 bits at ``pos``, uint64."""
    word, offset = pos >> 6, pos & 63
    high = words[word] << np.uint64(offset)
    return high | ((words[word + 1] >> np.uint64(1)) >> np.uint64(63 - offset))


@njit(cache=True, forceinline=True)
def take(words, pos, length):
    """The ``length`` bits at ``pos`` (1 <= length <= 64) as uint64."""
    return peek(words, pos) >> np.uint64(64 - length)


@njit(cache=True)
def put_all(words, pos, values, length):
    """`put` each of ``values``, unsigned; returns the new position."""
    for value in values:
        pos = put(words, pos, value, length)
    return pos


@njit(cache=True)
def take_all(words, pos, values, length):
    """Fill ``values``, unsigned, by `take`; returns the new position."""
    for t in range(values.size):
        values[t] = take(words, pos, length)
        pos += length
    return pos


@njit(cache=True, forceinline=True)
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


def round_scales(scales: np.ndarray, wire: np.dtype, up: bool = False) -> np.ndarray:
    """``scales`` (float64, >= 0) in wire precision; what is not finite there becomes the quiet NaN.

    ``up`` rounds to the next value that is not smaller, else to the nearest.
    """
    out = np.empty(scales.shape, wire)
    flat = out.reshape(-1)
    round_into(np.ascontiguousarray(scales).reshape(-1), flat, raw(flat), up)
    return out


def check_scales(unsigned: np.ndarray) -> None:
    """`WireError` unless the `raw` scales (workers, k) are >= 0 (not -0) or quiet NaNs."""
    worker = _first_wrong(unsigned)
    if worker >= 0:
        raise WireError(
            f"message {worker} of the block is not valid: its norm is not finite and >= 0"
        )


@njit(cache=True)
def round_into(scales, out, unsigned, up):
    """`round_scales` of a row, into ``out``, whose memory ``unsigned`` is as well.

    For numbers >= 0 the order of ``unsigned`` is that of the numbers.
    """
    for i in range(scales.size):
        out[i] = scales[i]
        if up and out[i] < scales[i]:
            unsigned[i] += 1
        if not np.isfinite(out[i]):
            out[i] = np.nan


@njit(cache=True)
def _first_wrong(unsigned):
    """The first row with bits that are neither the quiet NaN's nor of a number >= 0; else -1."""
    infinity, nan = np.uint64(0x7FF0 << 48), np.uint64(0x7FF8 << 48)
    if unsigned.itemsize == 4:
        infinity, nan = np.uint64(0x7F800000), np.uint64(0x7FC00000)
    for i in range(unsigned.shape[0]):
        for bits in unsigned[i]:
            if bits >= infinity and bits != nan:
                return i
    return -1


@njit(cache=True)
def means_no_levels(norm, bits):
    """Whether a float of ``bits`` (32 or 64) bits is zero, or NaN or infinite."""
    exponent = 0xFF if bits == 32 else 0x7FF
    digits = 23 if bits == 32 else 52
    return norm == 0 or (norm >> np.uint64(digits)) & np.uint64(exponent) == np.uint64(exponent)


@njit(cache=True)
def check_levels(norms, bits, limits, starts, row):
    """LEVEL or EMPTY where ``norms`` (B,) and ``limits`` (1,) or (d,) forbid the levels, else 0."""
    many = limits.size > 1
    for b in range(norms.size):
        above, levels = False, False  # no early return: so the loop takes vector instructions
        for j in range(np.uint64(starts[b]), np.uint64(starts[b + 1])):
            above |= abs(row[j]) > (limits[j] if many else limits[0])
            levels |= row[j] != 0
        if above:
            return LEVEL
        if levels and means_no_levels(norms[b], bits):
            return EMPTY
    return 0
