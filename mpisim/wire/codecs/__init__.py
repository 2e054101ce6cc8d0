"""The codes of quantized vectors, by the names that the key ``codec`` gives them."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Literal, get_args

import numpy as np

from mpisim.wire.codecs import ans, elias, enumerative
from mpisim.wire.codecs.bits import fail

__all__ = ["CODECS", "Codec", "CodecName"]

CodecName = Literal["elias", "e1", "entropy"]


class Codec:
    """Writes and reads the messages of m workers: B norms and d levels each.

    ``code`` is a module with the functions `payload_bits`, `encode` and `decode`. ``check()``
    raises `InputError` where a library is missing.

    In all methods
    norms : array, shape (m, B), uint64
        Floats of ``bits`` (32 or 64) bits, as unsigned integers.
    levels : array, shape (m, d), int32 or int64
    """

    def __init__(self, code: ModuleType, check: Callable[[], object] = lambda: None):
        self.code, self.check = code, check

    def payload_bits(self, norms: np.ndarray, bits: int, levels: np.ndarray) -> np.ndarray:
        """Bits of each message without padding, norms included, shape (m,), int64."""
        return self.code.payload_bits(norms, bits, levels)

    def encode(
        self, norms: np.ndarray, bits: int, levels: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The bytes of the messages, each padded to whole bytes, and `payload_bits`."""
        payload = np.empty(len(levels), np.int64)
        return self.code.encode(norms, bits, levels, payload), payload

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
        payload = np.empty(len(sizes), np.int64)
        data = np.ascontiguousarray(data)
        worker, status = self.code.decode(data, sizes, bits, limits, starts, norms, levels, payload)
        if status < 0:
            raise fail(worker, status)
        return payload


CODECS = {
    "elias": Codec(elias),
    "e1": Codec(enumerative),
    "entropy": Codec(ans, check=ans.library),
}
assert CODECS.keys() == set(get_args(CodecName))
