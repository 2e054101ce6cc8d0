"""Sparse vectors whose indices server and worker both know: only the values travel."""

from __future__ import annotations

import dataclasses
from functools import lru_cache

import numpy as np
from numba import njit

from mpisim.core.lazy_rows import LazyRows, gather
from mpisim.core.ordered_sums import rounded
from mpisim.wire.base import Form, Message, Packed, Precision, check_sizes, same


@dataclasses.dataclass(eq=False)
class SeededForm(Form):
    """Coordinates drawn from shared randomness, as the rows of a CSR matrix; sizes are known.

    ptr : array, shape (workers + 1,), int64
        Worker i sends the coordinates ``indices[ptr[i]:ptr[i+1]]``, ascending.
    indices : array, shape (ptr[-1],), int64
    scale : float or array, shape (ptr[-1],), float64
        Receivers multiply every value, or each one, by it, in arithmetic precision.
    sizes : array, shape (workers,), int64
        Bytes of each message; from ``ptr`` unless given.
    """

    d: int
    workers: int
    precision: Precision
    ptr: np.ndarray
    indices: np.ndarray
    scale: float | np.ndarray = 1.0
    sizes: np.ndarray = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.sizes is None:
            self.sizes = self.counts * self.precision.wire.itemsize

    @property
    def counts(self) -> np.ndarray:
        """How many coordinates each worker sends, shape (workers,), int64."""
        return self.ptr[1:] - self.ptr[:-1]

    @classmethod
    def of_rows(cls, d: int, precision: Precision, rows: np.ndarray, scale: float) -> SeededForm:
        """The same number of coordinates for each worker: ``rows``, shape (workers, k), int64."""
        m, k = rows.shape
        ptr, sizes = _even(m, k, precision.wire.itemsize)
        return cls(d, m, precision, ptr, rows.reshape(-1), scale, sizes)

    def take(self, v: np.ndarray | LazyRows) -> Seeded:
        """The message with these coordinates of ``v``, shape (workers, d), rounded to the wire."""
        if not isinstance(v, np.ndarray):
            return Seeded(self, rounded(v.take(self.ptr, self.indices), self.precision.wire))
        values = np.empty(self.indices.size, self.precision.wire)
        gather(np.ascontiguousarray(v), self.ptr, self.indices, values)
        return Seeded(self, values)

    def decode(self, data: np.ndarray, sizes: np.ndarray) -> Seeded:
        check_sizes(self, data, sizes)
        return Seeded(self, data.view(self.precision.wire))


@lru_cache(maxsize=64)
def _even(workers: int, k: int, value_bytes: int) -> tuple[np.ndarray, np.ndarray]:
    """``ptr`` and ``sizes`` of messages with k values each: the same in every round."""
    ptr = np.arange(0, workers * k + 1, k)
    ptr.flags.writeable = False
    return ptr, same(workers, k * value_bytes)


@dataclasses.dataclass(eq=False)
class Seeded(Message):
    """``values``: shape (form.ptr[-1],), wire precision; any float is allowed."""

    form: SeededForm
    values: np.ndarray

    @property
    def payload_bits(self) -> np.ndarray:
        return 8 * self.form.sizes

    def encode(self) -> Packed:
        sizes = self.form.sizes
        return Packed(self.values.view(np.uint8), sizes, 8 * sizes)

    def decoded(self) -> np.ndarray:
        out = np.zeros((self.form.workers, self.form.d), self.form.precision.arithmetic)
        scatter(out, self.form.ptr, self.form.indices, *self._arithmetic())
        return out

    def add_to(self, rows: np.ndarray) -> None:
        scatter_onto(rows, self.form.ptr, self.form.indices, *self._arithmetic())

    def total(self) -> np.ndarray:
        total = np.zeros(self.form.d, self.form.precision.arithmetic)
        scatter_add(total, self.form.indices, *self._arithmetic())
        return total

    def _arithmetic(self) -> tuple[np.ndarray, np.floating]:
        arithmetic, scale = self.form.precision.arithmetic, self.form.scale
        values = self.values  # the kernels take smaller floats as they are
        if values.itemsize > arithmetic.itemsize:
            values = values.astype(arithmetic)
        if isinstance(scale, np.ndarray):
            return values * scale.astype(arithmetic, copy=False), arithmetic.type(1)
        return values, arithmetic.type(scale)


@njit(cache=True)
def scatter(out, ptr, indices, values, scale):
    """out[i, indices[t]] = scale * values[t] for worker i's stretch of t; all of one float type."""
    for i in range(ptr.size - 1):
        for t in range(ptr[i], ptr[i + 1]):
            out[i, indices[t]] = scale * values[t]


@njit(cache=True)
def scatter_onto(rows, ptr, indices, values, scale):
    """rows[i, indices[t]] += scale * values[t] for worker i's stretch of t."""
    for i in range(ptr.size - 1):
        for t in range(ptr[i], ptr[i + 1]):
            rows[i, indices[t]] += scale * values[t]


@njit(cache=True)
def scatter_add(total, indices, values, scale):
    """total[indices[t]] += scale * values[t], t ascending: worker by worker."""
    for t in range(indices.size):
        total[indices[t]] += scale * values[t]
