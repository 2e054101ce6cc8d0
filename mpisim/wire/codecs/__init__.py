"""The codes of quantized vectors, by the names that the key ``codec`` gives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol, get_args

import numpy as np

from mpisim.wire.codecs import elias, enumerative
from mpisim.wire.codecs.ans import Entropy
from mpisim.wire.codecs.bits import fail

__all__ = ["CODECS", "Codec", "CodecName"]

CodecName = Literal["elias", "e1", "entropy"]


class Codec(Protocol):
    """Writes and reads the messages of m workers: B norms and d levels each.

    norms : array, shape (m, B), uint64
        Their bits, as floats of ``bits`` (32 or 64) bits.
    levels : array, shape (m, d), int32 or int64
    """

    def check(self) -> None:
        """`InputError` where a library is missing."""
        ...

    def payload_bits(self, norms: np.ndarray, bits: int, levels: np.ndarray) -> np.ndarray:
        """Bits of each message without padding, norms included, shape (m,), int64."""
        ...

    def encode(
        self, norms: np.ndarray, bits: int, levels: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The bytes of the messages, each padded to whole bytes, and `payload_bits`."""
        ...

    def decode(
        self,
        data: np.ndarray,
        sizes: np.ndarray,
        bits: int,
        limits: np.ndarray,
        starts: np.ndarray,
        norms: np.ndarray,
        levels: np.ndarray,
    ) -> np.ndarray:
        """Fill ``norms`` and ``levels`` (zero before); returns `payload_bits`.

        `WireError` if ``data`` is not exactly what `encode` writes. Linear in time and memory.

        sizes : bytes of each message, shape (m,), int64
        limits : the largest level allowed, shape (1 or m, 1 or d), int64
        starts : shape (B + 1,); norm b belongs to the levels starts[b] to starts[b+1] - 1
        """
        ...


class Compiled:
    """A codec that consists of kernels which treat all workers at once."""

    def __init__(self, payload_bits: Callable, encode: Callable, decode: Callable):
        self.payload_bits, self._encode, self._decode = payload_bits, encode, decode

    def check(self) -> None:
        pass

    def encode(
        self, norms: np.ndarray, bits: int, levels: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        payload = np.empty(len(levels), np.int64)
        return self._encode(norms, bits, levels, payload), payload

    def decode(
        self,
        data: np.ndarray,
        sizes: np.ndarray,
        bits: int,
        limits: np.ndarray,
        starts: np.ndarray,
        norms: np.ndarray,
        levels: np.ndarray,
    ) -> np.ndarray:
        payload = np.empty(len(sizes), np.int64)
        data = np.ascontiguousarray(data)
        worker, status = self._decode(data, sizes, bits, limits, starts, norms, levels, payload)
        if status < 0:
            raise fail(worker, status)
        return payload


CODECS: dict[str, Codec] = {
    "elias": Compiled(elias.payload_bits, elias.encode, elias.decode),
    "e1": Compiled(enumerative.payload_bits, enumerative.encode, enumerative.decode),
    "entropy": Entropy(),
}
assert CODECS.keys() == set(get_args(CodecName))
