"""Messages of at most K coordinates of each vector: how many there are, and what `Explicit` has.

The number takes the bits of K. Then come one flag bit (framing), the indices in the shorter of the
two codes of `mpisim.wire.sparse`, the values, and ones up to the next byte. The codec "entropy" is
that of `mpisim.wire.codecs.places`.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from mpisim.wire.base import checked
from mpisim.wire.sparse import Indexed, IndexedForm


class FewerForm(IndexedForm):
    """At most ``k`` coordinates of each worker."""

    @property
    def widths(self) -> tuple[int, int, int]:
        return self.k.bit_length(), *super().widths[1:]

    def decode(self, data: np.ndarray, sizes: np.ndarray) -> Fewer:
        data, sizes = checked(self, data, sizes)
        # no more than the bytes have room for
        most = min(self.workers * self.k, 8 * data.size // self.precision.bits)
        indices, values = np.empty(most, np.int64), np.empty(most, self.precision.wire)
        counts, payload = self.decode_rows(data, sizes, indices, values)
        ptr = np.concatenate([[0], np.cumsum(counts)])
        return Fewer(self, ptr, indices[: ptr[-1]], values[: ptr[-1]], payload)


@dataclasses.dataclass(eq=False)
class Fewer(Indexed):
    """Worker i sends the coordinates ``indices[ptr[i]:ptr[i+1]]``, ascending, and their values.

    ptr : (workers + 1,), int64; indices : (ptr[-1],), int64; values : likewise, wire precision
    """

    form: FewerForm
    ptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    payload: np.ndarray | None = None
