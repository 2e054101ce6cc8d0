"""Vectors of a block of workers that are worked out where they are needed, and only there.

A compressor that knows its coordinates before it sees v asks for those alone; others, and messages
without compression, take some workers at a time. Nothing of size n x d needs to be there, and what
comes out has the bits that it would have from the dense array (m, d).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
from numba import njit

BLOCK = 1 << 16  # numbers of the rows that are worked out together


def blocks(m: int, d: int) -> list[tuple[int, int]]:
    """Stretches (first, stop) of m workers whose rows (stop - first, d) fit into a cache."""
    height = max(1, BLOCK // d)
    return [(first, min(first + height, m)) for first in range(0, m, height)]


class LazyRows(ABC):
    """``shape`` (m, d) and ``dtype`` as of an array."""

    shape: tuple[int, int]
    dtype: np.dtype

    @abstractmethod
    def fill(self, first: int, out: np.ndarray) -> None:
        """The vectors of workers first, first + 1, ... of the block into ``out`` (any, d)."""

    def fill_less(self, first: int, less: np.ndarray, out: np.ndarray) -> None:
        """The same minus the rows ``less`` (any, d)."""
        self.fill(first, out)
        out -= less

    @abstractmethod
    def take(self, ptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
        """Worker i's coordinates indices[ptr[i]:ptr[i+1]], for all i, shape (ptr[-1],)."""

    def take_less(
        self, other: LazyRows | np.ndarray, ptr: np.ndarray, indices: np.ndarray
    ) -> np.ndarray:
        """The same minus the coordinates of ``other``, of the same shape."""
        values = self.take(ptr, indices)
        if not isinstance(other, np.ndarray):
            return values - other.take(ptr, indices)
        taken = np.empty_like(values)
        gather(other, ptr, indices, taken)
        return values - taken

    def dense(self) -> np.ndarray:
        """All of them, shape (m, d)."""
        return self.rows(0, self.shape[0])

    def rows(self, first: int, stop: int) -> np.ndarray:
        """The vectors of workers first, ..., stop - 1, shape (stop - first, d)."""
        out = np.empty((stop - first, self.shape[1]), self.dtype)
        self.fill(first, out)
        return out

    def parts(self) -> Iterator[tuple[slice, np.ndarray]]:
        """All of them, some workers at a time: which, and their vectors until the next ones."""
        m, d = self.shape
        stretches = blocks(m, d)
        buffer = np.empty((stretches[0][1] if stretches else 0, d), self.dtype)
        for first, stop in stretches:
            rows = buffer[: stop - first]
            self.fill(first, rows)
            yield slice(first, stop), rows

    def __sub__(self, other: LazyRows | np.ndarray) -> LazyRows:
        return LazyDifference(self, other)


class LazyDifference(LazyRows):
    """``first`` - ``second``, both (m, d)."""

    def __init__(self, first: LazyRows, second: LazyRows | np.ndarray):
        self.first, self.second = first, second
        self.shape, self.dtype = first.shape, first.dtype

    def fill(self, first: int, out: np.ndarray) -> None:
        other, stop = self.second, first + len(out)
        less = other[first:stop] if isinstance(other, np.ndarray) else other.rows(first, stop)
        self.first.fill_less(first, less, out)

    def take(self, ptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
        return self.first.take_less(self.second, ptr, indices)


@njit(cache=True)
def gather(v, ptr, indices, values):
    """values[t] = v[i, indices[t]] for worker i's stretch of t, rounded to the type of values."""
    for i in range(ptr.size - 1):
        for t in range(ptr[i], ptr[i + 1]):
            values[t] = v[i, indices[t]]
