"""Messages of at most K coordinates of each vector: how many there are, and what `Explicit` has.

The number takes the bits of K. Then come one flag bit (framing), the indices in the shorter of the
two codes of `mpisim.wire.sparse`, the values, and ones up to the next byte.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numba import njit

from mpisim.wire.base import CodedMessage, Form, Packed, check_sizes
from mpisim.wire.codecs import bits as buffer
from mpisim.wire.codecs import omega
from mpisim.wire.sparse import AsSeeded, Seeded, SeededForm, read_fixed


@dataclasses.dataclass(eq=False)
class FewerForm(Form):
    """At most ``k`` coordinates of each worker, 1 <= k <= d."""

    k: int

    @property
    def sizes(self) -> None:
        return None

    @property
    def widths(self) -> tuple[int, int, int]:
        """Bits of the number of coordinates, of an index in the fixed code, and of a value."""
        return self.k.bit_length(), (self.d - 1).bit_length(), self.precision.bits

    def decode(self, data: np.ndarray, sizes: np.ndarray) -> Fewer:
        check_sizes(self, data, sizes)
        counts, payload = np.empty((2, self.workers), np.int64)
        # no more than the bytes have room for
        most = min(self.workers * self.k, 8 * data.size // self.precision.bits)
        indices, values = np.empty(most, np.int64), np.empty(most, self.precision.wire)
        data, sizes = np.ascontiguousarray(data), np.asarray(sizes, np.int64)
        where = counts, indices, buffer.raw(values), payload
        buffer.check(*_read(data, sizes, *where, self.k, self.d, *self.widths))
        ptr = np.concatenate([[0], np.cumsum(counts)])
        return Fewer(self, ptr, indices[: ptr[-1]], values[: ptr[-1]], payload)


@dataclasses.dataclass(eq=False)
class Fewer(AsSeeded, CodedMessage):
    """Worker i sends the coordinates ``indices[ptr[i]:ptr[i+1]]``, ascending, and their values.

    ptr : (workers + 1,), int64; indices : (ptr[-1],), int64; values : likewise, wire precision
    """

    form: FewerForm
    ptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    payload: np.ndarray | None = None

    def encode(self) -> Packed:
        raw = buffer.raw(self.values)
        packed = Packed(*_write(self.ptr, self.indices, raw, *self.form.widths))
        self.payload = packed.payload_bits
        return packed

    def seeded(self) -> Seeded:
        form = self.form
        return Seeded(
            SeededForm.of(form.d, form.precision, self.ptr, self.indices, 1.0), self.values
        )


@njit(cache=True)
def _write(ptr, indices, raw, head, width, bits):
    """(bytes of all messages, bytes of each, payload bits of each)."""
    m, pos = ptr.size - 1, 0
    payload, sizes = np.empty(m, np.int64), np.empty(m, np.int64)
    words = buffer.new_words(m * (8 + head) + indices.size * (width + bits))
    for i in range(m):
        row, start = indices[ptr[i] : ptr[i + 1]], pos
        gaps = omega.gap_bits(row) < row.size * width
        pos = buffer.put(words, pos, row.size, head)
        pos = buffer.put(words, pos, int(gaps), 1)
        if gaps:
            pos = omega.put_gaps(words, pos, row)
        elif width > 0:
            pos = buffer.put_all(words, pos, row, width)
        pos = buffer.put_all(words, pos, raw[ptr[i] : ptr[i + 1]], bits)
        payload[i] = pos - start - 1
        pos = buffer.pad(words, pos)
        sizes[i] = (pos - start) // 8
    return buffer.to_bytes(words, pos // 8), sizes, payload


@njit(cache=True)
def _read(data, sizes, counts, indices, raw, payload, k, d, head, width, bits):
    """Fill ``counts``, ``indices``, ``raw`` and ``payload``; returns (worker, status)."""
    words = buffer.to_words(data)
    end, first = 0, np.int64(0)
    for i in range(counts.size):
        start = end
        end += 8 * sizes[i]
        if start + head + 1 > end:
            return i, buffer.SHORT
        count = np.int64(buffer.take(words, start, head))
        if count > k:
            return i, buffer.LARGE
        if start + head + 1 + count * bits > end:
            return i, buffer.SHORT
        row = indices[first : first + count]
        gaps = buffer.take(words, start + head, 1) == 1
        if gaps:
            pos = omega.read_gaps(words, start + head + 1, end, row, d)
        else:
            pos = read_fixed(words, start + head + 1, end, row, d, width)
        if pos < 0:
            return i, pos
        if gaps != (omega.gap_bits(row) < count * width):
            return i, buffer.CHOICE
        if pos + count * bits > end:
            return i, buffer.SHORT
        pos = buffer.take_all(words, pos, raw[first : first + count], bits)
        if not buffer.is_padding(words, pos, end):
            return i, buffer.PADDING
        counts[i], payload[i] = count, pos - start - 1
        first += count
    return 0, 0
