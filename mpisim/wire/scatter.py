"""Messages of a few coordinates of each vector, and how these are put in place."""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache

import numpy as np
from numba import njit

from mpisim.wire.base import Message

Entries = tuple[np.ndarray, np.ndarray, np.ndarray, np.floating]


class SparseMessage(Message):
    """Messages that decode to vectors with few non-zero coordinates."""

    @abstractmethod
    def entries(self) -> Entries:
        """(ptr, indices, values, scale), a CSR matrix, in arithmetic precision.

        Worker i has scale * values[t] at the coordinate indices[t], ptr[i] <= t < ptr[i+1]. Values
        may be of a smaller float type: the kernels convert them.
        """

    def decoded(self) -> np.ndarray:
        out = np.zeros((self.form.workers, self.form.d), self.form.precision.arithmetic)
        _set(out, *self.entries())
        return out

    def add_to(self, rows: np.ndarray) -> None:
        _add(rows, *self.entries())

    def total(self) -> np.ndarray:
        total = np.zeros(self.form.d, self.form.precision.arithmetic)
        _sum(total, *self.entries())
        return total


def scaled(
    values: np.ndarray, scale: float | np.ndarray, arithmetic: np.dtype
) -> tuple[np.ndarray, np.floating]:
    """The last two of `SparseMessage.entries`; ``scale`` is one number, or one for each value."""
    if values.itemsize > arithmetic.itemsize:
        values = values.astype(arithmetic)
    if isinstance(scale, np.ndarray):
        return values * scale.astype(arithmetic, copy=False), arithmetic.type(1)
    return values, arithmetic.type(scale)


@lru_cache(maxsize=64)
def even_ptr(workers: int, k: int) -> np.ndarray:
    """``ptr`` of messages with k coordinates each, read-only: the same in every round."""
    ptr = np.arange(workers + 1) * k
    ptr.flags.writeable = False
    return ptr


@njit(cache=True)
def _set(out, ptr, indices, values, scale):
    for i in range(ptr.size - 1):
        for t in range(ptr[i], ptr[i + 1]):
            out[i, indices[t]] = scale * values[t]


@njit(cache=True)
def _add(rows, ptr, indices, values, scale):
    for i in range(ptr.size - 1):
        for t in range(ptr[i], ptr[i + 1]):
            rows[i, indices[t]] += scale * values[t]


@njit(cache=True)
def _sum(total, ptr, indices, values, scale):
    for t in range(indices.size):  # ascending: worker by worker
        total[indices[t]] += scale * values[t]
