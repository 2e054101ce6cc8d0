"""Sparse vectors with indices that only the worker knows: k of d coordinates, TopK's message.

One flag bit (framing), k indices in the shorter of the two index codes (0: fixed width, also when
both are as long; 1: Elias gaps), k values, and ones up to the next byte.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property

import numpy as np
from numba import njit

from mpisim.wire.base import Form, Message, Packed, Precision, bit_bounds, check_sizes
from mpisim.wire.codecs.bits import (
    CHOICE,
    PADDING,
    SHORT,
    UNSIGNED,
    fail,
    is_padding,
    new_words,
    pad,
    put,
    take,
    to_bytes,
    to_words,
)
from mpisim.wire.codecs.indices import (
    fixed_width,
    gap_bits,
    put_fixed,
    put_gaps,
    read_fixed,
    read_gaps,
)
from mpisim.wire.sparse import scatter, scatter_add, scatter_onto


@dataclasses.dataclass(eq=False)
class ExplicitForm(Form):
    """``k`` coordinates of each worker, 1 <= k <= d; sizes are the sender's to tell."""

    d: int
    workers: int
    precision: Precision
    k: int

    @property
    def sizes(self) -> None:
        return None

    def take(self, v: np.ndarray, indices: np.ndarray) -> Explicit:
        """The message with the coordinates ``indices`` (workers, k) of ``v`` (workers, d)."""
        values = np.empty(indices.shape, self.precision.wire)
        take_rows(np.ascontiguousarray(v), indices, values)
        return Explicit(self, indices, values)

    def decode(self, data: np.ndarray, sizes: np.ndarray) -> Explicit:
        check_sizes(self, data, sizes)
        shortest = -(-self.k * (self.precision.bits + min(1, fixed_width(self.d))) // 8)
        if np.any(np.asarray(sizes) < shortest):  # before any memory is taken
            raise fail(int(np.argmax(np.asarray(sizes) < shortest)), SHORT)
        indices = np.empty((self.workers, self.k), np.int64)
        raw = np.empty((self.workers, self.k), np.uint64)
        bits, width = self.precision.bits, fixed_width(self.d)
        worker, status = _read(to_words(data), bit_bounds(sizes), indices, raw, self.d, width, bits)
        if status < 0:
            raise fail(worker, status)
        values = raw.astype(UNSIGNED[bits // 8]).view(self.precision.wire)
        return Explicit(self, indices, values)


@dataclasses.dataclass(eq=False)
class Explicit(Message):
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
        return _index_bits(self.indices, fixed_width(self.form.d))

    @property
    def payload_bits(self) -> np.ndarray:
        return self.index_bits + self.form.k * self.form.precision.bits

    def encode(self) -> Packed:
        payload = self.payload_bits
        sizes = (1 + payload + 7) // 8
        words = new_words(8 * int(sizes.sum()))
        bits = self.form.precision.bits
        raw = self.values.view(UNSIGNED[bits // 8]).astype(np.uint64)
        _write(words, self.indices, raw, fixed_width(self.form.d), bits)
        return Packed(to_bytes(words, int(sizes.sum())), sizes, payload)

    def decoded(self) -> np.ndarray:
        form = self.form
        out = np.zeros((form.workers, form.d), form.precision.arithmetic)
        ptr = np.arange(form.workers + 1) * form.k
        scatter(out, ptr, self.indices.reshape(-1), *self._arithmetic())
        return out

    def add_to(self, rows: np.ndarray) -> None:
        ptr = np.arange(self.form.workers + 1) * self.form.k
        scatter_onto(rows, ptr, self.indices.reshape(-1), *self._arithmetic())

    def total(self) -> np.ndarray:
        total = np.zeros(self.form.d, self.form.precision.arithmetic)
        scatter_add(total, self.indices.reshape(-1), *self._arithmetic())
        return total

    def _arithmetic(self) -> tuple[np.ndarray, np.floating]:
        arithmetic = self.form.precision.arithmetic
        return self.values.astype(arithmetic, copy=False).reshape(-1), arithmetic.type(1)


@njit(cache=True)
def take_rows(v, indices, values):
    """values[i, t] = v[i, indices[i, t]], rounded to the type of values."""
    for i in range(indices.shape[0]):
        for t in range(indices.shape[1]):
            values[i, t] = v[i, indices[i, t]]


@njit(cache=True)
def _index_bits(indices, width):
    bits = np.empty(indices.shape[0], np.int64)
    for i in range(indices.shape[0]):
        bits[i] = min(indices.shape[1] * width, gap_bits(indices[i]))
    return bits


@njit(cache=True)
def _write(words, indices, raw, width, bits):
    pos = 0
    for i in range(indices.shape[0]):
        gaps = gap_bits(indices[i]) < indices.shape[1] * width
        pos = put(words, pos, int(gaps), 1)
        row = indices[i]
        pos = put_gaps(words, pos, row) if gaps else put_fixed(words, pos, row, width)
        for value in raw[i]:
            pos = put(words, pos, value, bits)
        pos = pad(words, pos)


@njit(cache=True)
def _read(words, bounds, indices, raw, d, width, bits):
    for i in range(indices.shape[0]):
        pos, end = bounds[i], bounds[i + 1]
        if pos == end:
            return i, SHORT
        gaps = take(words, pos, 1) == 1
        if gaps:
            pos = read_gaps(words, pos + 1, end, indices[i], d)
        else:
            pos = read_fixed(words, pos + 1, end, indices[i], d, width)
        if pos < 0:
            return i, pos
        if gaps != (gap_bits(indices[i]) < indices.shape[1] * width):
            return i, CHOICE
        if pos + indices.shape[1] * bits > end:
            return i, SHORT
        for t in range(indices.shape[1]):
            raw[i, t] = take(words, pos, bits)
            pos += bits
        if not is_padding(words, pos, end):
            return i, PADDING
    return 0, 0
