"""Levels in an entropy coder with the message's own frequencies, the code "entropy".

The coder is the ANS coder of the library constriction (R. Bamler), an optional dependency: the
extra ``entropy``. It shows how far other codes are from the empirical entropy of the levels; its
frequencies are part of the message.

Levels are sorted into classes (`mpisim.wire.codecs.level_classes`). The message of a worker is

    omega(c), c the number of classes up to the largest that occurs;
    omega(count + 1) for each of the classes 1 to c - 1 (the rest of the d levels have class 0);
    zeros (framing, less than a byte), then the ANS coder's number.

That number holds, on top of a one, the norms, for each non-zero level its sign (1: negative) and
lower digits, and then all classes. It starts from the norms' bits and not from nothing, so it takes
less than a bit more than the entropy of the classes.

The functions `payload_bits`, `encode` and `decode` are those of a `mpisim.wire.codecs.Codec`. They
go worker by worker, because the library works on one message at a time.
"""

from __future__ import annotations

from types import ModuleType

import numpy as np

from mpisim.core.errors import InputError
from mpisim.wire.codecs import level_classes
from mpisim.wire.codecs.buffer import ENTROPY, new_words, to_bytes, to_words
from mpisim.wire.codecs.norms import check_levels


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


def payload_bits(norms: np.ndarray, bits: int, levels: np.ndarray) -> np.ndarray:
    payload = np.empty(len(levels), np.int64)
    encode(norms, bits, levels, payload)
    return payload


def encode(norms: np.ndarray, bits: int, levels: np.ndarray, payload: np.ndarray) -> np.ndarray:
    messages = []
    for i, (own, row) in enumerate(zip(norms, levels, strict=True)):
        message, payload[i] = _write(own, bits, row)
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
    classes, counts = np.empty(row.size, np.int32), np.zeros(level_classes.CLASSES, np.int64)
    level_classes.classify(row, classes, counts)
    words = new_words(1 + norms.size * bits + level_classes.detail_bits(counts))
    number = _to_int(words, level_classes.put_details(words, norms, bits, row, classes))
    counts = counts[: np.flatnonzero(counts)[-1] + 1]
    if counts.size > 1:
        coder = library().stream.stack.AnsCoder(_to_array(number))
        coder.encode_reverse(classes, _model(counts))
        number = _from_array(coder.get_compressed())
    words = new_words(level_classes.count_bits(counts))
    used = level_classes.put_counts(words, counts)
    payload = used + number.bit_length()
    size = (payload + 7) // 8
    return (_to_int(words, used) << (8 * size - used) | number).to_bytes(size, "big"), payload


def _read(data: bytes, bits: int, norms: np.ndarray, row: np.ndarray) -> int:
    """Fill ``norms`` (B,) and ``row`` (d,), zero before; returns the unpadded bits or a status."""
    counts, end = np.zeros(level_classes.CLASSES, np.int64), 8 * len(data)
    words = to_words(np.frombuffer(data, np.uint8))
    kinds, start = level_classes.read_counts(words, end, row.size, counts)
    if kinds < 0:
        return kinds
    number = int.from_bytes(data, "big") & ((1 << (end - start)) - 1)
    payload = start + number.bit_length()
    classes = np.zeros(row.size, np.int32)
    if number > 0 and kinds > 1:
        coder = library().stream.stack.AnsCoder(_to_array(number))
        classes = coder.decode(_model(counts[:kinds]), row.size)
        number = _from_array(coder.get_compressed())
    details = 1 + norms.size * bits + level_classes.detail_bits(counts)
    counted = np.array_equal(np.bincount(classes, minlength=level_classes.CLASSES), counts)
    if end - payload >= 8 or number.bit_length() != details or not counted:
        return ENTROPY
    size = -(-details // 8)
    whole = (number << (8 * size - details)).to_bytes(size, "big")
    level_classes.take_details(to_words(np.frombuffer(whole, np.uint8)), norms, bits, row, classes)
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
