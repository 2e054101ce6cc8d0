"""Sparse vectors whose indices server and worker both know: only the values travel."""

from __future__ import annotations

import dataclasses

import numpy as np
from numba import njit

from mpisim.core.lazy_rows import LazyRows, coordinates
from mpisim.wire.base import Precision, pack_tensors, same
from mpisim.wire.dense import ValuesForm, ValuesMessage
from mpisim.wire.scatter import Entries, SparseMessage, even_ptr, scaled


@dataclasses.dataclass(eq=False)
class SeededForm(ValuesForm):
    """Coordinates drawn from shared randomness, as the rows of a CSR matrix.

    ptr : array, shape (workers + 1,), int64
        Worker i sends the coordinates ``indices[ptr[i]:ptr[i+1]]``, ascending.
    indices : array, shape (ptr[-1],), int64
    scale : float or array, shape (ptr[-1],), float64
        Receivers multiply every value, or each one, by it, in arithmetic precision.
    sizes, payload_bits : array, shape (workers,), int64
        Bytes and bits of each message; from ``ptr`` unless given.
    """

    ptr: np.ndarray
    indices: np.ndarray
    scale: float | np.ndarray = 1.0
    sizes: np.ndarray = None  # type: ignore[assignment]
    payload_bits: np.ndarray = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.sizes is None:
            self.sizes = self.counts * self.precision.wire.itemsize
            self.payload_bits = 8 * self.sizes

    @property
    def counts(self) -> np.ndarray:
        """How many coordinates each worker sends, shape (workers,), int64."""
        return self.ptr[1:] - self.ptr[:-1]

    @classmethod
    def of_rows(cls, d: int, precision: Precision, rows: np.ndarray, scale: float) -> SeededForm:
        """The same number of coordinates for each worker: ``rows``, shape (workers, k), int64."""
        m, k = rows.shape
        size = k * precision.wire.itemsize
        sizes, bits = same(m, size), same(m, 8 * size)
        return cls(d, m, precision, even_ptr(m, k), rows.reshape(-1), scale, sizes, bits)

    def take(self, v: np.ndarray | LazyRows) -> Seeded:
        """The message with these coordinates of ``v``, shape (workers, d), rounded to the wire.

        ``v`` may be a tensor.
        """
        if isinstance(v, (np.ndarray, LazyRows)):
            return Seeded(self, coordinates(v, self.ptr, self.indices, self.precision.wire))
        return pack_tensors(self, v)

    def intersection(self, other: SeededForm) -> SeededForm:
        """The coordinates that both keep, times both factors."""
        ptr = np.zeros(self.workers + 1, np.int64)
        size = min(self.indices.size, other.indices.size)
        ours, theirs = np.empty(size, np.int64), np.empty(size, np.int64)
        _common(self.ptr, self.indices, other.ptr, other.indices, ptr, ours, theirs)
        ours, theirs = ours[: ptr[-1]], theirs[: ptr[-1]]
        scale = self._factors(ours) * other._factors(theirs)
        indices = self.indices[ours]
        return SeededForm(self.d, self.workers, self.precision, ptr, indices, scale)

    def _factors(self, places: np.ndarray) -> float | np.ndarray:
        """``scale`` at some places of ``indices``; one number where all have the same."""
        return self.scale[places] if isinstance(self.scale, np.ndarray) else self.scale

    def decode(self, data: np.ndarray, sizes: np.ndarray) -> Seeded:
        return Seeded(self, self.read(data, sizes))


class Seeded(ValuesMessage, SparseMessage):
    """``values``: shape (form.ptr[-1],)."""

    form: SeededForm

    def entries(self) -> Entries:
        form = self.form
        values, scale = scaled(self.values, form.scale, form.precision.arithmetic)
        return form.ptr, form.indices, values, scale


@njit(cache=True)
def _common(ptr, indices, other_ptr, others, out_ptr, ours, theirs):
    """Where ascending rows have the same index, in both; fills ``out_ptr`` (workers + 1,)."""
    found = 0
    for i in range(ptr.size - 1):
        s = other_ptr[i]
        for t in range(ptr[i], ptr[i + 1]):
            while s < other_ptr[i + 1] and others[s] < indices[t]:
                s += 1
            if s < other_ptr[i + 1] and others[s] == indices[t]:
                ours[found], theirs[found] = t, s
                found += 1
        out_ptr[i + 1] = found
