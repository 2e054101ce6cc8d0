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
from mpisim.wire.base import Form, Packed, check_sizes, pack_tensors
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
        """The message with the coordinates ``indices`` (m, k) of ``v`` (m, d), also of tensors."""
        if not isinstance(v, np.ndarray):
            return pack_tensors(self, v, indices)
        ptr = even_ptr(*indices.shape)
        values = coordinates(v, ptr, indices.reshape(-1), self.precision.wire)
        return Explicit(self, indices, values.reshape(indices.shape))

    def decode(self, data: np.ndarray, sizes: np.ndarray) -> Explicit:
        check_sizes(self, data, sizes)
        sizes = np.asarray(sizes, np.int64)
        bits, width = self.precision.bits, index_codes.fixed_width(self.d)
        least = -(-self.k * (bits + min(1, width)) // 8)
        buffer.check(*_first_short(sizes, least))  # before any memory is taken
        indices = np.empty((self.workers, self.k), np.int64)
        values = np.empty((self.workers, self.k), self.precision.wire)
        payload, data = np.empty(self.workers, np.int64), np.ascontiguousarray(data)
        raw = buffer.raw(values)
        buffer.check(*_read(data, sizes, indices, raw, payload, self.d, width, bits))
        message = Explicit(self, indices, values)
        message.__dict__["payload_bits"] = payload  # what was read is what is charged
        return message


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
    def payload_bits(self) -> np.ndarray:  # type: ignore[override]
        width, bits = index_codes.fixed_width(self.form.d), self.form.precision.bits
        return _payload_bits(self.indices, width, bits)

    def encode(self) -> Packed:
        width, bits = index_codes.fixed_width(self.form.d), self.form.precision.bits
        packed = Packed(*_write(self.indices, buffer.raw(self.values), width, bits))
        self.__dict__["payload_bits"] = packed.payload_bits
        return packed

    def entries(self) -> Entries:
        form = self.form
        values, scale = scaled(self.values.reshape(-1), 1.0, form.precision.arithmetic)
        return even_ptr(*self.indices.shape), self.indices.reshape(-1), values, scale


@njit(cache=True)
def _payload_bits(indices, width, bits):
    """Bits of each message without its flag and padding, shape (m,), int64."""
    payload = np.empty(indices.shape[0], np.int64)
    for i in range(indices.shape[0]):
        row = indices[i]
        payload[i] = min(row.size * width, index_codes.gap_bits(row)) + row.size * bits
    return payload


@njit(cache=True)
def _write(indices, raw, width, bits):
    """(bytes of all messages, bytes of each, payload bits of each)."""
    m, k = indices.shape
    payload = _payload_bits(indices, width, bits)
    sizes = (1 + payload + 7) // 8
    words = buffer.new_words(8 * sizes.sum())
    pos = 0
    for i in range(m):
        row = indices[i]
        gaps = index_codes.gap_bits(row) < k * width
        pos = buffer.put(words, pos, int(gaps), 1)
        if gaps:
            pos = index_codes.put_gaps(words, pos, row)
        else:
            pos = index_codes.put_fixed(words, pos, row, width)
        pos = buffer.pad(words, buffer.put_all(words, pos, raw[i], bits))
    return buffer.to_bytes(words, pos // 8), sizes, payload


@njit(cache=True)
def _first_short(sizes, least):
    """(worker, status) of the first message of fewer than ``least`` bytes."""
    for i in range(sizes.size):
        if sizes[i] < least:
            return i, buffer.SHORT
    return 0, 0


@njit(cache=True)
def _read(data, sizes, indices, raw, payload, d, width, bits):
    """Fill ``indices``, ``raw`` and ``payload``; returns (worker, status)."""
    words = buffer.to_words(data)
    end = 0
    for i in range(indices.shape[0]):
        row, start = indices[i], end + 1
        end += 8 * sizes[i]
        if start > end:
            return i, buffer.SHORT
        gaps = buffer.take(words, start - 1, 1) == 1
        if gaps:
            pos = index_codes.read_gaps(words, start, end, row, d)
        else:
            pos = index_codes.read_fixed(words, start, end, row, d, width)
        if pos < 0:
            return i, pos
        if gaps != (index_codes.gap_bits(row) < row.size * width):
            return i, buffer.CHOICE
        if pos + row.size * bits > end:
            return i, buffer.SHORT
        pos = buffer.take_all(words, pos, raw[i], bits)
        if not buffer.is_padding(words, pos, end):
            return i, buffer.PADDING
        payload[i] = pos - start
    return 0, 0
