"""Messages of at most K coordinates of each vector: how many there are, and what `Explicit` has.

The number takes the bits of K. Then come one flag bit (framing), the indices in the shorter of the
two codes of `mpisim.wire.sparse`, the values, and ones up to the next byte. The codec "entropy" is
that of `mpisim.wire.codecs.places`.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from mpisim.wire.base import CodedMessage, Form, Packed, checked
from mpisim.wire.codecs import bits as buffer
from mpisim.wire.codecs import places
from mpisim.wire.sparse import AsSeeded, Seeded, SeededForm, read, write


@dataclasses.dataclass(eq=False)
class FewerForm(Form):
    """At most ``k`` coordinates of each worker, 1 <= k <= d."""

    k: int
    codec: str = "paper"

    sizes = None  # type: ignore[assignment]

    @property
    def widths(self) -> tuple[int, int, int]:
        """Bits of the number of coordinates, of an index in the fixed code, and of a value."""
        return self.k.bit_length(), (self.d - 1).bit_length(), self.precision.bits

    def decode(self, data: np.ndarray, sizes: np.ndarray) -> Fewer:
        data, sizes = checked(self, data, sizes)
        counts, payload = np.empty((2, self.workers), np.int64)
        # no more than the bytes have room for
        most = min(self.workers * self.k, 8 * data.size // self.precision.bits)
        indices, values = np.empty(most, np.int64), np.empty(most, self.precision.wire)
        where = counts, indices, buffer.raw(values), payload, self.k, self.d
        head, width, bits = self.widths
        if self.codec == "entropy":
            buffer.check(*places.read(data, sizes, *where, False, bits))
        else:
            buffer.check(*read(data, sizes, *where, head, width, bits))
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
        where, form = (self.ptr, self.indices, buffer.raw(self.values)), self.form
        head, width, bits = form.widths
        if form.codec == "entropy":
            packed = Packed(*places.write(*where, form.d, False, bits))
        else:
            packed = Packed(*write(*where, head, width, bits))
        self.payload = packed.payload_bits
        return packed

    def seeded(self) -> Seeded:
        form = self.form
        return Seeded(
            SeededForm.of(form.d, form.precision, self.ptr, self.indices, 1.0), self.values
        )
