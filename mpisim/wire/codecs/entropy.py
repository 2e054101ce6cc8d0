"""Levels in an entropy coder with the message's own frequencies, the code "entropy".

The coder is the ANS coder of the library constriction (R. Bamler), an optional dependency: the
extra ``entropy``. It shows how far other codes are from the empirical entropy of the levels; its
frequencies are part of the message.

Levels are sorted into classes, of which there are few enough to count how often each occurs.
|level| has class |level| below 16. For 2^e <= |level| < 2^(e+1), e >= 4, it has class 12 + e, and
its e lower digits are kept as they are. These digits and the sign are a level's details. A worker's
message is

    omega(c), c the number of classes up to the largest that occurs;
    omega(count + 1) for each of the classes 1 to c - 1 (the rest of the d levels have class 0);
    zeros (framing, less than a byte), then the ANS coder's number.

That number holds, on top of a one, the norms, for each non-zero level its sign (1: negative) and
lower digits, and then all classes. It starts from the norms' bits and not from nothing, so it takes
less than a bit more than the entropy of the classes.

The functions `encode` and `decode` are those of a `mpisim.wire.codecs.Codec`. They
go worker by worker, because the library works on one message at a time.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np
from numba import njit

from mpisim.core.errors import InputError
from mpisim.wire.codecs.bits import (
    ENTROPY,
    RANGE,
    bit_length,
    check_levels,
    new_words,
    put,
    put_all,
    take,
    take_all,
    to_bytes,
    to_words,
)
from mpisim.wire.codecs.omega import put_omega, read_omega

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


def encode(norms: np.ndarray, bits: int, levels: np.ndarray, payload: np.ndarray) -> np.ndarray:
    messages = []
    for i, row in enumerate(levels):
        message, payload[i] = _write(norms[i], bits, row)
        messages.append(message)
    return np.frombuffer(b"".join(messages), np.uint8)


def decode(data, sizes, bits, limits, starts, norms, levels, payload):
    ends = np.cumsum(sizes).tolist()
    for i, (end, size) in enumerate(zip(ends, sizes.tolist(), strict=True)):
        row = np.zeros(levels.shape[1], np.int64)
        payload[i] = _read(data[end - size : end].tobytes(), bits, norms[i], row)
        if payload[i] < 0:
            return i, int(payload[i])
        status = check_levels(norms[i], bits, limits[min(i, len(limits) - 1)], starts, row)
        if status < 0:
            return i, status
        levels[i] = row
    return 0, 0


def _write(norms: np.ndarray, bits: int, row: np.ndarray) -> tuple[bytes, int]:
    """The message of one worker with ``norms`` (B,) and levels (d,), and its unpadded bits."""
    classes, counts = np.empty(row.size, np.int32), np.zeros(CLASSES, np.int64)
    classify(row, classes, counts)
    words = new_words(1 + norms.size * bits + detail_bits(counts))
    number = _to_int(words, put_details(words, norms, bits, row, classes))
    counts = counts[: np.flatnonzero(counts)[-1] + 1]
    if counts.size > 1:
        coder = library().stream.stack.AnsCoder(_to_array(number))
        coder.encode_reverse(classes, _model(counts))
        number = _from_array(coder.get_compressed())
    words = new_words(80 * (1 + counts.size))  # no omega word is longer
    used = put_counts(words, counts)
    payload = used + number.bit_length()
    size = (payload + 7) // 8
    return (_to_int(words, used) << (8 * size - used) | number).to_bytes(size, "big"), payload


def _read(data: bytes, bits: int, norms: np.ndarray, row: np.ndarray) -> int:
    """Fill ``norms`` (B,) and ``row`` (d,), zero before; returns the unpadded bits or a status."""
    counts, end = np.zeros(CLASSES, np.int64), 8 * len(data)
    words = to_words(np.frombuffer(data, np.uint8))
    kinds, start = read_counts(words, end, row.size, counts)
    if kinds < 0:
        return kinds
    number = int.from_bytes(data, "big") & ((1 << (end - start)) - 1)
    payload = start + number.bit_length()
    classes = np.zeros(row.size, np.int32)
    if number > 0 and kinds > 1:
        coder = library().stream.stack.AnsCoder(_to_array(number))
        classes = coder.decode(_model(counts[:kinds]), row.size)
        number = _from_array(coder.get_compressed())
    details = 1 + norms.size * bits + detail_bits(counts)
    counted = np.array_equal(np.bincount(classes, minlength=CLASSES), counts)
    if end - payload >= 8 or number.bit_length() != details or not counted:
        return ENTROPY
    size = -(-details // 8)
    aligned = (number << (8 * size - details)).to_bytes(size, "big")
    take_details(to_words(np.frombuffer(aligned, np.uint8)), norms, bits, row, classes)
    return payload


def _model(counts: np.ndarray):
    return library().stream.model.Categorical(counts.astype(np.float32), perfect=False)


def _to_int(words: np.ndarray, bits: int) -> int:
    size = -(-bits // 8)
    return int.from_bytes(to_bytes(words, size).tobytes(), "big") >> (8 * size - bits)


def _to_array(number: int) -> np.ndarray:
    """32 bits in each element, the lowest first: what the library takes."""
    size = -(-number.bit_length() // 32)
    return np.frombuffer(number.to_bytes(4 * size, "little"), "<u4").astype(np.uint32)


def _from_array(elements: np.ndarray) -> int:
    return int.from_bytes(elements.astype("<u4").tobytes(), "little")


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
