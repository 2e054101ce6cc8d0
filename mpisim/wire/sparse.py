"""Messages of some coordinates of each vector, which both sides know, or the worker alone.

`Seeded` has the values alone, at coordinates that are drawn from shared randomness. `Explicit` is
TopK's: one flag bit (framing), k indices in the shorter of the two index codes (0: fixed width,
ceil(log2 d) bits each, also when both have the same length; 1: Elias gaps), k values, and ones up
to the next byte. With the codec "entropy" all indices take log2 C(d, k) bits:
`mpisim.wire.codecs.places`.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numba import njit

from mpisim.core.errors import InputError
from mpisim.core.lazy_rows import LazyRows, coordinates
from mpisim.wire.base import (
    CodedMessage,
    Form,
    KernelMessage,
    Packed,
    Precision,
    checked,
    pack_tensors,
    same,
)
from mpisim.wire.codecs import bits as buffer
from mpisim.wire.codecs import elias, places
from mpisim.wire.values import ValuesForm, ValuesMessage


class Seeded(ValuesMessage, KernelMessage):
    """``values``: shape (form.ptr[-1],); worker i's coordinates are scale * value."""

    def put(self, rows: np.ndarray, add: bool) -> None:
        _put(rows, add, self.form.ptr, self.form.indices, self.values, self.form.scale)

    def total(self) -> np.ndarray:
        form = self.form
        total = np.zeros(form.d, form.precision.arithmetic)
        _sum(total, form.indices, self.values, form.scale)
        return total


@njit(cache=True)
def _put(rows, add, ptr, indices, values, scale):
    """`KernelMessage.put`: ``scale`` (1,) or one for each value."""
    kind, many, m = rows.dtype.type, scale.size > 1, ptr.size - 1
    for i in range(m):
        row = rows[i if rows.shape[0] == m else i * rows.shape[0] // m]
        for t in range(ptr[i], ptr[i + 1]):
            value = kind(scale[t if many else 0]) * kind(values[t])
            row[indices[t]] = row[indices[t]] + value if add else value


@njit(cache=True)
def _sum(total, indices, values, scale):
    kind, many = total.dtype.type, scale.size > 1
    for t in range(indices.size):  # ascending: worker by worker
        total[indices[t]] += kind(scale[t if many else 0]) * kind(values[t])


@dataclasses.dataclass(eq=False)
class SeededForm(ValuesForm):
    """Coordinates drawn from shared randomness, as the rows of a CSR matrix: `of`, `of_rows`.

    ptr : array, shape (workers + 1,), int64
        Worker i sends the coordinates ``indices[ptr[i]:ptr[i+1]]``, ascending.
    indices : array, shape (ptr[-1],), int64
    scale : array, shape (1,) or (ptr[-1],), float64
        Receivers multiply every value, or each one, by it, in arithmetic precision.
    """

    message = Seeded
    ptr: np.ndarray
    indices: np.ndarray
    scale: np.ndarray
    sizes: np.ndarray

    @classmethod
    def of(
        cls,
        d: int,
        precision: Precision,
        ptr: np.ndarray,
        indices: np.ndarray,
        scale: float | np.ndarray,
    ) -> SeededForm:
        """The form with these rows; ``scale`` is one number, or one for each value."""
        scale, sizes = np.asarray(scale).reshape(-1), np.diff(ptr) * precision.wire.itemsize
        return cls(d, ptr.size - 1, precision, ptr, indices, scale, sizes)

    @classmethod
    def of_rows(cls, d: int, precision: Precision, rows: np.ndarray, scale: float) -> SeededForm:
        """The same number of coordinates for each worker: ``rows``, shape (workers, k), int64."""
        m, k = rows.shape
        if k > d:
            raise InputError(f"SeededForm.of_rows: {k} coordinates a row; allowed: up to d = {d}")
        sizes, factor = same(m, k * precision.wire.itemsize), np.array([scale])
        form = cls(d, m, precision, _even_ptr(m, k), rows.reshape(-1), factor, sizes)
        form.payload_bits = same(m, k * precision.bits)
        return form

    @property
    def counts(self) -> np.ndarray:
        """How many coordinates each worker sends, shape (workers,), int64."""
        return np.diff(self.ptr)

    def take(self, v: np.ndarray | LazyRows) -> Seeded:
        """The message with these coordinates of ``v`` (workers, d), maybe a tensor, rounded."""
        if isinstance(v, (np.ndarray, LazyRows)):
            return Seeded(self, coordinates(v, self.ptr, self.indices, self.precision.wire))
        return pack_tensors(self, v)

    def intersection(self, other: SeededForm) -> SeededForm:
        """The coordinates that both keep, times both factors."""
        ptr = np.zeros(self.workers + 1, np.int64)
        first, second = np.empty((2, min(self.indices.size, other.indices.size)), np.int64)
        _common(self.ptr, self.indices, other.ptr, other.indices, ptr, first, second)
        first, second = first[: ptr[-1]], second[: ptr[-1]]
        factor, other_factor = (
            form.scale[places] if form.scale.size > 1 else form.scale
            for form, places in ((self, first), (other, second))
        )
        scale = factor * other_factor
        return SeededForm.of(self.d, self.precision, ptr, self.indices[first], scale)


@lru_cache(maxsize=64)
def _even_ptr(workers: int, k: int) -> np.ndarray:
    """``ptr`` of messages with k coordinates each, read-only: the same in every round."""
    ptr = np.arange(workers + 1) * k
    ptr.flags.writeable = False
    return ptr


@njit(cache=True)
def _common(ptr, indices, other_ptr, other_indices, out_ptr, first, second):
    """Where ascending rows have the same index, in both; fills ``out_ptr`` (workers + 1,)."""
    count = 0
    for i in range(ptr.size - 1):
        s = other_ptr[i]
        for t in range(ptr[i], ptr[i + 1]):
            while s < other_ptr[i + 1] and other_indices[s] < indices[t]:
                s += 1
            if s < other_ptr[i + 1] and other_indices[s] == indices[t]:
                first[count], second[count] = t, s
                count += 1
        out_ptr[i + 1] = count


@dataclasses.dataclass(eq=False)
class IndexedForm(Form):
    """Coordinates that the worker chose; only the sender knows the sizes.

    k : the most coordinates of a worker, 1 <= k <= d
    scale : receivers multiply every value by it, in arithmetic precision
    """

    k: int
    codec: str = "paper"
    scale: float = 1.0

    sizes = None  # type: ignore[assignment]

    @cached_property
    def scales(self) -> np.ndarray:
        """``scale``, shape (1,)."""
        return np.array([self.scale])

    @property
    def widths(self) -> tuple[int, int, int]:
        """Bits of the number of coordinates (0: it is k), an index in the fixed code, a value."""
        return 0, (self.d - 1).bit_length(), self.precision.bits

    def encode_rows(self, ptr: np.ndarray, indices: np.ndarray, values: np.ndarray) -> Packed:
        """Worker i sends ``indices`` and ``values`` from ptr[i] to ptr[i+1] - 1."""
        head, width, bits = self.widths
        where = ptr, indices, buffer.raw(values)
        if self.codec == "entropy":
            return Packed(*places.write(*where, self.d, head == 0, bits))
        return Packed(*write(*where, head, width, bits))

    def decode_rows(
        self, data: np.ndarray, sizes: np.ndarray, indices: np.ndarray, values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """How many coordinates each worker sent, and payload bits; fills the other two."""
        head, width, bits = self.widths
        counts, payload = np.empty((2, self.workers), np.int64)
        where = data, sizes, counts, indices, buffer.raw(values), payload, self.k, self.d
        if self.codec == "entropy":
            buffer.check(*places.read(*where, head == 0, bits))
        else:
            buffer.check(*read(*where, head, width, bits))
        return counts, payload


class Indexed(KernelMessage, CodedMessage):
    """Messages of an `IndexedForm`, whose methods take ``indices`` and ``values`` flat."""

    form: Any
    ptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray

    def encode(self) -> Packed:
        packed = self.form.encode_rows(self.ptr, self.indices.ravel(), self.values.ravel())
        self.payload = packed.payload_bits
        return packed

    def put(self, rows: np.ndarray, add: bool) -> None:
        _put(rows, add, self.ptr, self.indices.ravel(), self.values.ravel(), self.form.scales)

    def total(self) -> np.ndarray:
        total = np.zeros(self.form.d, self.form.precision.arithmetic)
        _sum(total, self.indices.ravel(), self.values.ravel(), self.form.scales)
        return total


class ExplicitForm(IndexedForm):
    """``k`` coordinates of each worker."""

    def take(self, v: np.ndarray | LazyRows, indices: np.ndarray) -> Explicit:
        """The message with the coordinates ``indices`` (m, k) of ``v`` (m, d), also of tensors."""
        if not isinstance(v, (np.ndarray, LazyRows)):
            return pack_tensors(self, v, indices)
        ptr = _even_ptr(*indices.shape)
        values = coordinates(v, ptr, indices.ravel(), self.precision.wire)
        return Explicit(self, indices, values.reshape(indices.shape))

    def decode(self, data: np.ndarray, sizes: np.ndarray) -> Explicit:
        data, sizes = checked(self, data, sizes)
        _, width, bits = self.widths
        least = -(-self.k * (bits + (0 if self.codec == "entropy" else min(1, width))) // 8)
        if data.size < self.workers * least:  # before any memory is taken
            buffer.check(int((sizes < least).argmax()), buffer.SHORT)
        indices = np.empty((self.workers, self.k), np.int64)
        values = np.empty((self.workers, self.k), self.precision.wire)
        _, payload = self.decode_rows(data, sizes, indices.ravel(), values.ravel())
        return Explicit(self, indices, values, payload)


@dataclasses.dataclass(eq=False)
class Explicit(Indexed):
    """The message of k coordinates.

    indices : array, shape (m, k), int64, ascending in each row
    values : array, shape (m, k), wire precision; any float is allowed
    """

    form: ExplicitForm
    indices: np.ndarray
    values: np.ndarray
    payload: np.ndarray | None = None

    @property
    def ptr(self) -> np.ndarray:  # type: ignore[override]
        return _even_ptr(*self.indices.shape)


@njit(cache=True)
def write(ptr, indices, raw, head, width, bits):
    """(bytes of all messages, bytes of each, payload bits of each).

    Worker i sends ``indices`` and ``raw`` values from ptr[i] to ptr[i+1] - 1; their number goes
    ahead in ``head`` bits, unless these are 0.
    """
    m, pos = ptr.size - 1, 0
    payload, sizes = np.empty(m, np.int64), np.empty(m, np.int64)
    words = buffer.new_words(m * (8 + head) + indices.size * (width + bits))
    for i in range(m):
        row, start = indices[ptr[i] : ptr[i + 1]], pos
        gaps = elias.gap_bits(row) < row.size * width
        if head > 0:
            pos = buffer.put(words, pos, row.size, head)
        pos = buffer.put(words, pos, int(gaps), 1)
        if gaps:
            pos = elias.put_gaps(words, pos, row)
        elif width > 0:
            pos = buffer.put_all(words, pos, row, width)
        pos = buffer.put_all(words, pos, raw[ptr[i] : ptr[i + 1]], bits)
        payload[i] = pos - start - 1
        pos = buffer.pad(words, pos)
        sizes[i] = (pos - start) // 8
    return buffer.to_bytes(words, pos // 8), sizes, payload


@njit(cache=True)
def read(data, sizes, counts, indices, raw, payload, k, d, head, width, bits):
    """Fill ``counts``, ``indices``, ``raw`` and ``payload`` of `write`; returns (worker, status).

    k : of all workers, without a ``head``; else the most
    """
    words = buffer.to_words(data)
    end, first = 0, np.int64(0)
    for i in range(counts.size):
        start = end
        end += 8 * sizes[i]
        if start + head + 1 > end:
            return i, buffer.SHORT
        count = np.int64(buffer.take(words, start, head)) if head > 0 else np.int64(k)
        if count > k:
            return i, buffer.LARGE
        if start + head + 1 + count * bits > end:
            return i, buffer.SHORT
        row, values = indices[first : first + count], raw[first : first + count]
        pos = _read_row(words, start + head, end, row, values, d, width, bits)
        if pos < 0:
            return i, pos
        counts[i], payload[i] = count, pos - start - 1
        first += count
    return 0, 0


@njit(inline="always")
def _read_row(words, pos, end, row, values, d, width, bits):
    """Fill ``row`` and ``values`` from the flag bit on; returns the new position or a status."""
    gaps = buffer.take(words, pos, 1) == 1
    if gaps:
        pos = elias.read_gaps(words, pos + 1, end, row, d)
    else:
        pos = _read_fixed(words, pos + 1, end, row, d, width)
    if pos < 0:
        return pos
    if gaps != (elias.gap_bits(row) < row.size * width):
        return buffer.CHOICE
    if pos + row.size * bits > end:
        return buffer.SHORT
    pos = buffer.take_all(words, pos, values, bits)
    return pos if buffer.is_padding(words, pos, end) else buffer.PADDING


@njit(cache=True)
def _read_fixed(words, pos, end, row, d, width):
    """Fill ``row`` with ascending indices below d; returns the new position or a status."""
    if pos + row.size * width > end:
        return buffer.SHORT
    last = -1
    for t in range(row.size):
        j = int(buffer.take(words, pos, width)) if width > 0 else 0
        if j <= last or j >= d:
            return buffer.RANGE
        row[t] = last = j
        pos += width
    return pos
