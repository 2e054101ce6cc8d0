"""Sparse vectors with indices that only the worker knows: k of d coordinates, TopK's message.

One flag bit (framing), k indices in the shorter of the two index codes (0: fixed width, also when
both have the same length; 1: Elias gaps), k values, and ones up to the next byte.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property

import numpy as np
from numba import njit

from mpisim.core.lazy_rows import coordinates
from mpisim.wire.base import Form, Packed, bit_bounds, check_sizes
from mpisim.wire.codecs import buffer, index_codes
from mpisim.wire.scatter import Entries, SparseMessage, even_ptr, scaled


@dataclasses.dataclass(eq=False)
class ExplicitForm(Form):
    """``k`` coordinates of each worker, 1 <= k <= d; only the sender knows the sizes."""

    k: int

    @property
    def sizes(self) -> None:
        return None

    def take(self, v: np.ndarray, indices: np.ndarray) -> Explicit:
        """The message with the coordinates ``indices`` (m, k) of ``v`` (m, d)."""
        ptr = even_ptr(*indices.shape)
        values = coordinates(v, ptr, indices.reshape(-1), self.precision.wire)
        return Explicit(self, indices, values.reshape(indices.shape))

    def decode(self, data: np.ndarray, sizes: np.ndarray) -> Explicit:
        check_sizes(self, data, sizes)
        sizes = np.asarray(sizes, np.int64)
        bits, width = self.precision.bits, index_codes.fixed_width(self.d)
        short = sizes < -(-self.k * (bits + min(1, width)) // 8)
        if short.any():  # before any memory is taken
            buffer.check(int(short.argmax()), buffer.SHORT)
        indices = np.empty((self.workers, self.k), np.int64)
        values = np.empty((self.workers, self.k), self.precision.wire)
        words = buffer.to_words(np.ascontiguousarray(data))
        buffer.check(
            *_read(words, bit_bounds(sizes), indices, buffer.raw(values), self.d, width, bits)
        )
        return Explicit(self, indices, values)


@dataclasses.dataclass(eq=False)
class Explicit(SparseMessage):
    """The message of k coordinates.

    indices : array, shape (m, k), int64, ascending in each row
    values : array, shape (m, k), wire precision; any float is allowed
    """

    form: ExplicitForm
    indices: np.ndarray
    values: np.ndarray

    @cached_property
    def index_bits(self) -> np.ndarray:
        """Bits of the indices, shape (m,), int64."""
        return _index_bits(self.indices, index_codes.fixed_width(self.form.d))

    @property
    def payload_bits(self) -> np.ndarray:
        return self.index_bits + self.form.k * self.form.precision.bits

    def encode(self) -> Packed:
        payload = self.payload_bits
        sizes = (1 + payload + 7) // 8
        words = buffer.new_words(8 * int(sizes.sum()))
        width, bits = index_codes.fixed_width(self.form.d), self.form.precision.bits
        _write(words, self.indices, buffer.raw(self.values), width, bits)
        return Packed(buffer.to_bytes(words, int(sizes.sum())), sizes, payload)

    def entries(self) -> Entries:
        form = self.form
        values, scale = scaled(self.values.reshape(-1), 1.0, form.precision.arithmetic)
        return even_ptr(*self.indices.shape), self.indices.reshape(-1), values, scale


@njit(cache=True)
def _index_bits(indices, width):
    bits = np.empty(indices.shape[0], np.int64)
    for i in range(indices.shape[0]):
        bits[i] = min(indices.shape[1] * width, index_codes.gap_bits(indices[i]))
    return bits


@njit(cache=True)
def _write(words, indices, raw, width, bits):
    pos = 0
    for i in range(indices.shape[0]):
        row = indices[i]
        gaps = index_codes.gap_bits(row) < row.size * width
        pos = buffer.put(words, pos, int(gaps), 1)
        if gaps:
            pos = index_codes.put_gaps(words, pos, row)
        else:
            pos = index_codes.put_fixed(words, pos, row, width)
        pos = buffer.pad(words, buffer.put_all(words, pos, raw[i], bits))


@njit(cache=True)
def _read(words, bounds, indices, raw, d, width, bits):
    for i in range(indices.shape[0]):
        pos, end = bounds[i], bounds[i + 1]
        if pos == end:
            return i, buffer.SHORT
        gaps = buffer.take(words, pos, 1) == 1
        if gaps:
            pos = index_codes.read_gaps(words, pos + 1, end, indices[i], d)
        else:
            pos = index_codes.read_fixed(words, pos + 1, end, indices[i], d, width)
        if pos < 0:
            return i, pos
        if gaps != (index_codes.gap_bits(indices[i]) < indices.shape[1] * width):
            return i, buffer.CHOICE
        if pos + indices.shape[1] * bits > end:
            return i, buffer.SHORT
        pos = buffer.take_all(words, pos, raw[i], bits)
        if not buffer.is_padding(words, pos, end):
            return i, buffer.PADDING
    return 0, 0
