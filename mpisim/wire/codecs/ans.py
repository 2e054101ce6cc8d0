"""Levels in an entropy coder with the message's own frequencies, the code "entropy".

The coder is the ANS coder of the library constriction (R. Bamler), an optional dependency: the
extra ``entropy``. It shows how far other codes are from the empirical entropy of the levels; its
frequencies are part of the message.

|level| has class |level| below 16, and for 2^e <= |level| < 2^(e+1), e >= 4, class 12 + e with the
e lower digits as they are. The message of a worker is

    omega(c), c the number of classes up to the largest that occurs;
    omega(count + 1) for each of the classes 1 to c - 1 (the rest of the d levels have class 0);
    zeros (framing, less than a byte), then the ANS coder's number.

That number holds, on top of a one, the norms, for each non-zero level its sign (1: negative) and
lower digits, and then all classes. As it starts from the norms' bits and not from nothing, it takes
the entropy of the classes and less than a bit more.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np
from numba import njit

from mpisim.core.errors import InputError, WireError
from mpisim.wire.codecs.bits import (
    RANGE,
    bit_length,
    fail,
    new_words,
    put,
    take,
    to_bytes,
    to_words,
)
from mpisim.wire.codecs.elias import means_no_levels
from mpisim.wire.codecs.omega import omega_encode, read_omega

PLAIN = 16  # levels below have a class each
CLASSES = PLAIN + 60


def library() -> ModuleType:
    """constriction, or `InputError` where it is not installed."""
    try:
        import constriction
    except ImportError:
        raise InputError(
            'compressor.codec: "entropy" needs the library constriction:'
            " pip install 'mpisim[entropy]'"
        ) from None
    return constriction


def write(raw: np.ndarray, bits: int, row: np.ndarray) -> tuple[bytes, int]:
    """The message of one worker and its bits without padding.

    raw : array, shape (B,), uint64, the ``bits`` low bits of each norm; row : levels, shape (d,)
    """
    classes, counts = np.empty(row.size, np.int32), np.zeros(CLASSES, np.int64)
    digits = _classify(row, classes, counts)
    largest = int(np.flatnonzero(counts)[-1])
    words = new_words(1 + raw.size * bits + int(digits))
    used = _write_digits(words, raw, bits, row, classes)
    number = _to_int(words, used)
    if largest > 0:
        coder = library().stream.stack.AnsCoder(_to_digits(number))
        coder.encode_reverse(classes, _model(counts[: largest + 1]))
        number = _of_digits(coder.get_compressed())
    header, header_bits = omega_encode(np.concatenate([[largest + 1], counts[1 : largest + 1] + 1]))
    payload = header_bits + number.bit_length()
    size = (payload + 7) // 8
    head = int.from_bytes(header.tobytes(), "big") >> (8 * header.size - header_bits)
    return (head << (8 * size - header_bits) | number).to_bytes(size, "big"), payload


def read(
    data: bytes, d: int, norms: int, bits: int, worker: int
) -> tuple[np.ndarray, np.ndarray, int]:
    """(raw norms (B,), levels (d,) int64, bits without padding), or `WireError`."""
    counts = np.zeros(CLASSES, np.int64)
    body = np.frombuffer(data, np.uint8)
    largest, start = _read_header(to_words(body), 8 * body.size, d, counts)
    if largest < 0:
        raise fail(worker, largest)
    number = int.from_bytes(data, "big") & ((1 << (8 * len(data) - start)) - 1)
    payload = start + number.bit_length()
    classes = np.zeros(d, np.int32)
    if number > 0 and largest > 0:
        coder = library().stream.stack.AnsCoder(_to_digits(number))
        classes = coder.decode(_model(counts[: largest + 1]), d)
        number = _of_digits(coder.get_compressed())
    digits = 1 + norms * bits + int(_digits(counts))
    counted = np.array_equal(np.bincount(classes, minlength=CLASSES), counts)
    if 8 * len(data) - payload >= 8 or number.bit_length() != digits or not counted:
        raise WireError(f"message {worker} of the block is not valid: it is no entropy code")
    size = -(-digits // 8)
    whole = (number << (8 * size - digits)).to_bytes(size, "big")
    raw, row = np.empty(norms, np.uint64), np.zeros(d, np.int64)
    _read_digits(to_words(np.frombuffer(whole, np.uint8)), raw, bits, row, classes)
    return raw, row, payload


@njit(cache=True)
def fits(raw, bits, limits, starts, row):
    """1: a level is above its limit; 2: levels follow a norm that is zero or no number; else 0."""
    stride = int(limits.size > 1)
    for b in range(raw.size):
        empty = means_no_levels(raw[b], bits)
        for j in range(starts[b], starts[b + 1]):
            if abs(row[j]) > limits[j * stride]:
                return 1
            if empty and row[j] != 0:
                return 2
    return 0


def _model(counts: np.ndarray):
    return library().stream.model.Categorical(counts.astype(np.float32), perfect=False)


def _to_int(words: np.ndarray, bits: int) -> int:
    size = -(-bits // 8)
    return int.from_bytes(to_bytes(words, size).tobytes(), "big") >> (8 * size - bits)


def _to_digits(number: int) -> np.ndarray:
    size = -(-number.bit_length() // 32)
    return np.frombuffer(number.to_bytes(4 * size, "little"), "<u4").astype(np.uint32)


def _of_digits(digits: np.ndarray) -> int:
    return int.from_bytes(digits.astype("<u4").tobytes(), "little")


@njit(cache=True)
def _classify(row, classes, counts):
    """Fills ``classes`` (d,) and ``counts``; returns the bits of signs and lower digits."""
    digits = 0
    for j in range(row.size):
        size = abs(np.int64(row[j]))
        kind = size if size < PLAIN else np.int64(PLAIN - 5 + bit_length(size))
        classes[j] = kind
        counts[kind] += 1
        digits += _width(kind)
    return digits


@njit(cache=True)
def _width(kind):
    """Bits of the sign and the lower digits of a level of this class."""
    if kind < PLAIN:
        return int(kind > 0)
    return 1 + kind - PLAIN + 4


@njit(cache=True)
def _digits(counts):
    total = 0
    for kind in range(counts.size):
        total += counts[kind] * _width(kind)
    return total


@njit(cache=True)
def _write_digits(words, raw, bits, row, classes):
    pos = put(words, 0, 1, 1)
    for norm in raw:
        pos = put(words, pos, norm, bits)
    for j in range(row.size):
        if row[j] != 0:
            pos = put(words, pos, int(row[j] < 0), 1)
            width = _width(np.int64(classes[j])) - 1
            if width > 0:
                pos = put(words, pos, abs(np.int64(row[j])) ^ (1 << width), width)
    return pos


@njit(cache=True)
def _read_digits(words, raw, bits, row, classes):
    pos = 1
    for b in range(raw.size):
        raw[b] = take(words, pos, bits)
        pos += bits
    for j in range(row.size):
        kind = np.int64(classes[j])
        if kind > 0:
            negative = take(words, pos, 1) == 1
            pos += 1
            size, width = kind, _width(kind) - 1
            if width > 0:
                size = np.int64(take(words, pos, width)) | (1 << width)
                pos += width
            row[j] = -size if negative else size


@njit(cache=True)
def _read_header(words, end, d, counts):
    """(the largest class, new position), or (status, position)."""
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
    return kinds - 1, pos
