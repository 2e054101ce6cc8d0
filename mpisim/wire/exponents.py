"""Vectors of signed powers of two: natural compression's message, 9 bits a coordinate.

A code is one sign bit and 8 exponent bits e: e = 1, ..., 255 means +-2**(e - 127), from the
smallest normal float32 up to 2**128, one power above the largest, so that every float32 can be
rounded up; e = 0 is zero with the sign bit 0, and NaN with the sign bit 1. In float32 arithmetic
2**128 is infinite. Codes follow each other, and ones fill the last byte.

The codec "paper" writes 9 bits each, "entropy" what `mpisim.wire.codecs.symbols` says.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property

import numpy as np
from numba import njit

from mpisim.wire.base import CodedMessage, Form, KernelMessage, Packed, checked, same
from mpisim.wire.codecs import bits as buffer
from mpisim.wire.codecs import entropy

CODE_BITS = 9
NAN_CODE = 1 << 8

POWERS = np.ldexp(1.0, np.arange(256) - 127)
VALUES = np.concatenate([POWERS, -POWERS])
VALUES[0], VALUES[NAN_CODE] = 0.0, np.nan


@dataclasses.dataclass(eq=False)
class ExponentsForm(Form):
    """Messages of 9 d bits, and their sizes are known; or in the codec "entropy"."""

    codec: str = "paper"

    @property
    def sizes(self) -> np.ndarray | None:
        if self.codec == "entropy":
            return None
        return same(self.workers, -(-CODE_BITS * self.d // 8))

    @cached_property
    def values(self) -> np.ndarray:
        """Value of each code, shape (512,), arithmetic precision."""
        with np.errstate(over="ignore"):
            return VALUES.astype(self.precision.arithmetic)

    def decode(self, data: np.ndarray, sizes: np.ndarray) -> Exponents:
        data, sizes = checked(self, data, sizes)
        if self.codec == "entropy":
            raw = entropy.no_numbers(self.workers)
            return Exponents(self, *entropy.read_symbols(data, sizes, self.d, raw, 1))
        codes = np.empty((self.workers, self.d), np.uint16)
        buffer.check(*_read(data, codes))
        return Exponents(self, codes)


@dataclasses.dataclass(eq=False)
class Exponents(KernelMessage, CodedMessage):
    """``codes``: shape (m, d), uint16, below 512."""

    form: ExponentsForm
    codes: np.ndarray
    payload: np.ndarray | None = None

    @property
    def payload_bits(self) -> np.ndarray:
        if self.form.codec == "entropy":
            return super().payload_bits
        return same(self.form.workers, CODE_BITS * self.form.d)

    def encode(self) -> Packed:
        sizes = self.form.sizes
        if sizes is None:
            raw = entropy.no_numbers(self.form.workers)
            data, self.payload = entropy.write_symbols(self.codes, raw, 1)
            return Packed(data, buffer.bytes_for(self.payload), self.payload)
        return Packed(_write(self.codes), sizes, self.payload_bits)

    def put(self, rows: np.ndarray, add: bool) -> None:
        _put(rows, add, self.codes, self.form.values)


@njit(cache=True)
def _write(codes):
    """The bytes of all messages."""
    m, d = codes.shape
    words = buffer.new_words(m * (CODE_BITS * d + 7))
    pos = 0
    for i in range(m):
        pos = buffer.pad(words, buffer.put_all(words, pos, codes[i], CODE_BITS))
    return buffer.to_bytes(words, pos // 8)


@njit(cache=True)
def _read(data, codes):
    """Fill ``codes`` from messages of the same size; returns (worker, status).

    Eight codes fill nine bytes, and code t of them begins t bits into byte t.
    """
    m, d = codes.shape
    size, full = data.size // max(1, m), d & -8
    padding = (8 - d % 8) % 8
    for i in range(m):
        at = np.uint64(i * size)
        for j in range(np.uint64(0), np.uint64(full), np.uint64(8)):
            for t in range(np.uint64(8)):
                codes[i, j + t] = _code(data, at + t, t)
            at += np.uint64(9)
        for t in range(np.uint64(d - full)):
            codes[i, np.uint64(full) + t] = _code(data, at + t, t)
        last = (1 << padding) - 1
        if size > 0 and (data[i * size + size - 1] & last) != last:
            return i, buffer.PADDING
    return 0, 0


@njit(cache=True, forceinline=True)
def _code(data, byte, t):
    """The code that begins t bits into a byte."""
    both = np.uint32(data[byte]) << np.uint32(8) | np.uint32(data[byte + np.uint64(1)])
    return both >> (np.uint32(7) - np.uint32(t)) & np.uint32(511)


@njit(cache=True)
def _put(rows, add, codes, values):
    """`KernelMessage.put`; ``values``: of each code."""
    for i in range(codes.shape[0]):
        row = rows[i * rows.shape[0] // codes.shape[0]]
        for j in range(codes.shape[1]):
            row[j] = row[j] + values[codes[i, j]] if add else values[codes[i, j]]
