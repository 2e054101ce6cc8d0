"""Elias gamma, delta and omega codes of integers from 1 to 2**63 - 1.

With B(n) the binary digits of n, and |B(n)| their number (P. Elias, 1975):

* gamma(n): |B(n)| - 1 zeros, then B(n);
* delta(n): gamma(|B(n)|), then B(n) without its leading one;
* omega(n): "0" for 1; else omega(|B(n)| - 1) without its last bit, then B(n), then "0".

All three are free of prefixes and each integer has one code word. An omega code word ends with a
zero, so at most 7 ones behind the last code word, which pad a message to bytes, are never taken for
another: a message needs no count. Integers below 1 have no code word and are an `InputError`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.core.errors import InputError, WireError
from mpisim.wire.codecs.bits import (
    LARGE,
    PADDING,
    REASONS,
    SHORT,
    bit_length,
    is_padding,
    new_words,
    pad,
    peek,
    put,
    take,
    to_bytes,
    to_words,
)
from mpisim.wire.codecs.omega_tables import MANY, MANY_BITS, OMEGA, SMALL

GAMMA_CODE, DELTA_CODE, OMEGA_CODE = 0, 1, 2


def omega_encode(values: np.ndarray) -> tuple[np.ndarray, int]:
    """Code words of integers >= 1, shape (count,): (bytes padded with ones, number of bits)."""
    return _encode(values, OMEGA_CODE)


def omega_decode(data: np.ndarray, nbits: int, count: int) -> np.ndarray:
    """Exactly ``count`` integers from exactly ``nbits`` bits, int64; anything else: `WireError`."""
    return _decode(data, nbits, count, OMEGA_CODE)


def omega_length(values: np.ndarray) -> np.ndarray:
    """Bits of each code word, shape of ``values``, int64."""
    return _lengths(_checked(values), OMEGA_CODE)


def gamma_encode(values: np.ndarray) -> tuple[np.ndarray, int]:
    """As `omega_encode`."""
    return _encode(values, GAMMA_CODE)


def gamma_decode(data: np.ndarray, nbits: int, count: int) -> np.ndarray:
    """As `omega_decode`."""
    return _decode(data, nbits, count, GAMMA_CODE)


def gamma_length(values: np.ndarray) -> np.ndarray:
    """As `omega_length`."""
    return _lengths(_checked(values), GAMMA_CODE)


def delta_encode(values: np.ndarray) -> tuple[np.ndarray, int]:
    """As `omega_encode`."""
    return _encode(values, DELTA_CODE)


def delta_decode(data: np.ndarray, nbits: int, count: int) -> np.ndarray:
    """As `omega_decode`."""
    return _decode(data, nbits, count, DELTA_CODE)


def delta_length(values: np.ndarray) -> np.ndarray:
    """As `omega_length`."""
    return _lengths(_checked(values), DELTA_CODE)


def _checked(values: np.ndarray) -> np.ndarray:
    values = np.asarray(values)
    if values.ndim != 1 or not (values.size == 0 or np.issubdtype(values.dtype, np.integer)):
        raise InputError(
            f"Elias code of {values.dtype} {values.shape}: it must be a 1-d integer array"
        )
    return np.ascontiguousarray(values, np.int64)  # 2**63 and above wrap to negative: refused below


def _encode(values: np.ndarray, code: int) -> tuple[np.ndarray, int]:
    values = _checked(values)
    low, high = _bounds(values)
    if low < 1:
        raise InputError(f"Elias code of {low}: it must be an integer from 1 to 2**63 - 1")
    words = new_words(values.size * int(number_length(high, code)))  # lengths grow with the integer
    write = _write_omegas if code == OMEGA_CODE else _write_all
    nbits = int(write(words, values, code))
    return to_bytes(words, -(-nbits // 8)), nbits


def _decode(data: np.ndarray, nbits: int, count: int, code: int) -> np.ndarray:
    if not 0 <= count <= nbits or data.size != -(-nbits // 8):
        raise WireError(f"{data.size} bytes cannot hold {count} Elias code words in {nbits} bits")
    values = np.empty(count, np.int64)
    read = _read_omegas if code == OMEGA_CODE else _read_all
    status = read(to_words(data), nbits, values, code)
    if status < 0:
        raise WireError(f"Elias code words are not valid: {REASONS[int(status)]}")
    return values


@njit(cache=True)
def _bounds(values):
    low, high = 1, 1
    for n in values:
        low, high = min(low, n), max(high, n)
    return low, high


# Primitives for other kernels: one number at a bit position


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
    """(n, new position), or (status, pos) where the bits before ``end`` hold no omega(n)."""
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
def number_length(n, code):
    """Length of the code word of n >= 1."""
    length = bit_length(n)
    if code == GAMMA_CODE:
        return 2 * length - 1
    if code == DELTA_CODE:
        return 2 * bit_length(length) - 1 + length - 1
    return omega_bits(n)


@njit(cache=True)
def _put_gamma(words, pos, n, length):
    if length > 1:
        pos = put(words, pos, 0, length - 1)
    return put(words, pos, n, length)


@njit(cache=True)
def _read_gamma(words, pos, end):
    zeros = 63 - bit_length(np.int64(peek(words, pos) >> np.uint64(1)))
    if zeros == 63:
        return (SHORT if pos + 63 >= end else LARGE), pos
    pos += 2 * zeros + 1
    return (np.int64(take(words, pos - zeros - 1, zeros + 1)) if pos <= end else SHORT), pos


@njit(cache=True)
def _read_delta(words, pos, end):
    length, pos = _read_gamma(words, pos, end)
    if length < 2:
        return length, pos
    if length > 63:
        return LARGE, pos
    pos += length - 1
    if pos > end:
        return SHORT, pos
    return (1 << (length - 1)) | np.int64(take(words, pos - length + 1, length - 1)), pos


# Whole arrays


@njit(cache=True)
def _lengths_kernel(values, code, out):
    for i in range(values.size):
        if values[i] < 1:
            return values[i]
        out[i] = number_length(values[i], code)
    return 1


def _lengths(values: np.ndarray, code: int) -> np.ndarray:
    out = np.empty(values.size, np.int64)
    low = _lengths_kernel(values, code, out)
    if low < 1:
        raise InputError(f"Elias code of {low}: it must be an integer from 1 to 2**63 - 1")
    return out


@njit(cache=True)
def _write_all(words, values, code):
    pos = 0
    for n in values:
        length = bit_length(n)
        if code == GAMMA_CODE:
            pos = _put_gamma(words, pos, n, length)
        else:
            pos = _put_gamma(words, pos, length, bit_length(length))
            if length > 1:
                pos = put(words, pos, n ^ (1 << (length - 1)), length - 1)
    pad(words, pos)
    return pos


@njit(cache=True)
def _write_omegas(words, values, code):
    pos, count = 0, values.size
    for i in range(0, count - 2, 3):  # three small numbers are at most 57 bits
        a, b, c = values[i], values[i + 1], values[i + 2]
        if (a | b | c) < SMALL:
            x, y, z = OMEGA[a], OMEGA[b], OMEGA[c]
            ly, lz = y & 31, z & 31
            word = ((((x >> 5) << ly) | (y >> 5)) << lz) | (z >> 5)
            pos = put(words, pos, word, (x & 31) + ly + lz)
        else:
            pos = put_omega(words, put_omega(words, put_omega(words, pos, a), b), c)
    for i in range(count - count % 3, count):
        pos = put_omega(words, pos, values[i])
    pad(words, pos)
    return pos


@njit(cache=True)
def _read_all(words, nbits, values, code):
    pos = 0
    for i in range(values.size):
        if code == GAMMA_CODE:
            n, pos = _read_gamma(words, pos, nbits)
        else:
            n, pos = _read_delta(words, pos, nbits)
        if n < 1:
            return n
        values[i] = n
    return _end(words, pos, nbits)


@njit(cache=True)
def _read_omegas(words, nbits, values, code):
    pos, i, count = 0, 0, values.size
    while i < count:
        entry = MANY[peek(words, pos) >> np.uint64(64 - MANY_BITS)]
        found = (entry >> 4) & 7
        if found and i + 6 <= count and pos + MANY_BITS <= nbits:
            for j in range(6):  # always six: what is not there is overwritten by the next step
                values[i + j] = (entry >> (8 + 8 * j)) & 255
            i += found
            pos += entry & 15
        else:
            n, pos = read_omega(words, pos, nbits)
            if n < 1:
                return n
            values[i] = n
            i += 1
    return _end(words, pos, nbits)


@njit(cache=True)
def _end(words, pos, nbits):
    if pos != nbits:
        return LARGE if pos > nbits else SHORT
    return pos if is_padding(words, pos, -(-pos // 8) * 8) else PADDING
