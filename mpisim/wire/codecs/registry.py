"""The codes of quantized vectors, by the name that the key ``codec`` gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, get_args

import numpy as np

from mpisim.wire.base import Packed
from mpisim.wire.codecs import ans as entropy
from mpisim.wire.codecs import enumerative as support
from mpisim.wire.codecs.bits import EMPTY, LEVEL, fail, new_words, to_bytes, to_words
from mpisim.wire.codecs.elias import decode, encode, triple_bits

if TYPE_CHECKING:
    from mpisim.wire.levels import LevelsForm

CodecName = Literal["elias", "e1", "entropy"]
Decoded = tuple[np.ndarray, np.ndarray, np.ndarray]  # raw norms, levels, payload bits


class Codec(Protocol):
    """Writes and reads levels, shape (m, d), and the bits of norms, shape (m, B), uint64."""

    def payload_bits(self, form: LevelsForm, raw: np.ndarray, levels: np.ndarray) -> np.ndarray:
        """Bits of each message without padding, norms included, shape (m,), int64."""
        ...

    def encode(self, form: LevelsForm, raw: np.ndarray, levels: np.ndarray) -> Packed:
        """The messages of the block."""
        ...

    def decode(self, form: LevelsForm, data: np.ndarray, sizes: np.ndarray) -> Decoded:
        """What `encode` was given, or `WireError`: total, linear in time and memory."""
        ...

    def check(self) -> None:
        """`InputError` where a library is missing."""
        ...


class Elias:
    """`mpisim.wire.codecs.elias`."""

    def check(self) -> None:
        pass

    def payload_bits(self, form: LevelsForm, raw: np.ndarray, levels: np.ndarray) -> np.ndarray:
        return triple_bits(levels) + form.norms * form.precision.bits

    def encode(self, form: LevelsForm, raw: np.ndarray, levels: np.ndarray) -> Packed:
        payload, sizes = np.empty(len(levels), np.int64), np.empty(len(levels), np.int64)
        data = encode(raw, form.precision.bits, levels, payload, sizes)
        return Packed(data, sizes, payload)

    def decode(self, form: LevelsForm, data: np.ndarray, sizes: np.ndarray) -> Decoded:
        raw, levels, payload = _room(form)
        kernel = (form.precision.bits, form.limits, form.starts, raw, levels, payload)
        worker, status = decode(np.ascontiguousarray(data), sizes, *kernel)
        if status < 0:
            raise fail(worker, status)
        return raw, levels, payload


class E1:
    """`mpisim.wire.codecs.enumerative`."""

    def check(self) -> None:
        pass

    def payload_bits(self, form: LevelsForm, raw: np.ndarray, levels: np.ndarray) -> np.ndarray:
        return support.count_bits(levels) + form.norms * (form.precision.bits - 1)

    def encode(self, form: LevelsForm, raw: np.ndarray, levels: np.ndarray) -> Packed:
        payload = self.payload_bits(form, raw, levels)
        words = new_words(int((payload + 7).sum()))
        end = support.write(words, raw, form.precision.bits - 1, levels)
        return Packed(to_bytes(words, end // 8), (payload + 7) // 8, payload)

    def decode(self, form: LevelsForm, data: np.ndarray, sizes: np.ndarray) -> Decoded:
        raw, levels, payload = _room(form)
        kernel = (form.precision.bits - 1, form.limits, form.starts, raw, levels, payload)
        worker, status = support.read(to_words(data), sizes, *kernel)
        if status < 0:
            raise fail(worker, status)
        return raw, levels, payload


class Entropy:
    """`mpisim.wire.codecs.ans`; worker by worker, as its library has it."""

    def check(self) -> None:
        entropy.library()

    def payload_bits(self, form: LevelsForm, raw: np.ndarray, levels: np.ndarray) -> np.ndarray:
        return self.encode(form, raw, levels).payload_bits

    def encode(self, form: LevelsForm, raw: np.ndarray, levels: np.ndarray) -> Packed:
        bits = form.precision.bits
        coded = [entropy.write(own, bits, row) for own, row in zip(raw, levels, strict=True)]
        data = np.frombuffer(b"".join(part for part, _ in coded), np.uint8)
        sizes = np.array([len(part) for part, _ in coded], np.int64)
        return Packed(data, sizes, np.array([payload for _, payload in coded], np.int64))

    def decode(self, form: LevelsForm, data: np.ndarray, sizes: np.ndarray) -> Decoded:
        bits = form.precision.bits
        raw, levels, payload = _room(form)
        ends = np.cumsum(sizes).tolist()
        for i, (end, length) in enumerate(zip(ends, sizes.tolist(), strict=True)):
            body = data[end - length : end].tobytes()
            raw[i], row, payload[i] = entropy.read(body, form.d, form.norms, bits, i)
            limits = form.limits[min(i, len(form.limits) - 1)]
            wrong = entropy.fits(raw[i], bits, limits, form.starts, row)
            if wrong:
                raise fail(i, LEVEL if wrong == 1 else EMPTY)
            levels[i] = row
        return raw, levels, payload


CODECS: dict[str, Codec] = {"elias": Elias(), "e1": E1(), "entropy": Entropy()}
assert CODECS.keys() == set(get_args(CodecName))


def _room(form: LevelsForm) -> Decoded:
    """What is read goes here; levels are zero."""
    levels = np.zeros((form.workers, form.d), form.dtype)
    raw = np.empty((form.workers, form.norms), np.uint64)
    return raw, levels, np.empty(form.workers, np.int64)
