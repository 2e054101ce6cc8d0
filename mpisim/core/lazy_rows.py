"""Vectors of a block of workers, computed only where they are needed.

A compressor that knows its coordinates before it sees v asks for those alone. Other compressors,
and uncompressed messages, take a few workers at a time. So no n x d array is needed, and the
result has the same bits as from the dense array (m, d).
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
from numba import njit

from mpisim.core.numerics.select import largest
from mpisim.core.numerics.sums import rounded

BLOCK = 1 << 16  # numbers computed together


def blocks(m: int, d: int) -> list[tuple[int, int]]:
    """Stretches (first, stop) of m workers whose rows (stop - first, d) fit into a cache."""
    height = max(1, BLOCK // d)
    return [(first, min(first + height, m)) for first in range(0, m, height)]


@dataclasses.dataclass(eq=False)
class LazyRows(ABC):
    """The vectors of m workers; ``shape`` (m, d) and ``dtype`` are those of an array."""

    shape: tuple[int, int]
    dtype: np.dtype
    __array_ufunc__ = None  # an array on the left leaves the operation to these rows

    @abstractmethod
    def fill(self, first: int, out: np.ndarray) -> None:
        """Write the vectors of workers first, first + 1, ... of the block to ``out`` (any, d)."""

    def fill_less(self, first: int, less: np.ndarray, out: np.ndarray) -> None:
        """`fill`, minus the rows ``less`` (any, d)."""
        self.fill(first, out)
        out -= less

    @abstractmethod
    def __getitem__(self, workers: np.ndarray) -> LazyRows:
        """The vectors of ``workers``, in this order, repetitions included."""

    @abstractmethod
    def take(self, ptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
        """Worker i's coordinates indices[ptr[i]:ptr[i+1]], for all i, shape (ptr[-1],)."""

    def take_less(
        self, other: LazyRows | np.ndarray, ptr: np.ndarray, indices: np.ndarray
    ) -> np.ndarray:
        """`take`, minus the same coordinates of ``other`` (m, d)."""
        return self.take(ptr, indices) - coordinates(other, ptr, indices, self.dtype)

    def largest(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The k largest |v_j| of each vector: indices and values (m, k).

        Order and ties are those of `mpisim.core.numerics.select.largest`.
        """
        indices = np.empty((self.shape[0], k), np.int64)
        values = np.empty((self.shape[0], k), self.dtype)
        for which, rows in self.parts():
            indices[which] = largest(rows, k)
            values[which] = np.take_along_axis(rows, indices[which], axis=1)
        return indices, values

    def largest_less(self, other: LazyRows | np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """`largest` of the vectors minus ``other`` (m, d)."""
        return LazyRows.largest(self - other, k)

    def largest_innovations(self, state: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """`largest_less` for the ``state`` of `innovations`."""
        return self.largest_less(state, k)

    def dense(self) -> np.ndarray:
        """All of them, shape (m, d)."""
        return self.rows(0, self.shape[0])

    def rows(self, first: int, stop: int) -> np.ndarray:
        """The vectors of workers first, ..., stop - 1, shape (stop - first, d)."""
        out = np.empty((stop - first, self.shape[1]), self.dtype)
        self.fill(first, out)
        return out

    def parts(self) -> Iterator[tuple[slice, np.ndarray]]:
        """All of them, a few workers at a time: (workers, vectors), in a buffer that is reused."""
        m, d = self.shape
        stretches = blocks(m, d)
        buffer = np.empty((stretches[0][1] if stretches else 0, d), self.dtype)
        for first, stop in stretches:
            rows = buffer[: stop - first]
            self.fill(first, rows)
            yield slice(first, stop), rows

    def __sub__(self, other: LazyRows | np.ndarray) -> LazyRows:
        return LazyDifference(self.shape, self.dtype, self, other)

    def __rsub__(self, other: np.ndarray) -> LazyRows:
        return LazyDifference(self.shape, self.dtype, Stored(self.shape, self.dtype, other), self)

    def __rmul__(self, factor: float) -> LazyRows:
        return LazyMultiple(self.shape, self.dtype, factor, self)


def row_blocks(v: np.ndarray | LazyRows) -> Iterator[tuple[slice, np.ndarray]]:
    """`LazyRows.parts`; ``v`` (m, d) may also be an array."""
    if isinstance(v, LazyRows):
        yield from v.parts()
    else:
        yield from ((slice(first, stop), v[first:stop]) for first, stop in blocks(*v.shape))


@dataclasses.dataclass(eq=False)
class LazyDifference(LazyRows):
    """``first`` - ``second``, both (m, d)."""

    first: LazyRows
    second: LazyRows | np.ndarray

    def fill(self, first: int, out: np.ndarray) -> None:
        other, stop = self.second, first + len(out)
        less = other[first:stop] if isinstance(other, np.ndarray) else other.rows(first, stop)
        self.first.fill_less(first, less, out)

    def __getitem__(self, workers: np.ndarray) -> LazyRows:
        return self.first[workers] - self.second[workers]

    def take(self, ptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
        return self.first.take_less(self.second, ptr, indices)

    def largest(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        return self.first.largest_less(self.second, k)


class LazyInnovations(LazyDifference):
    """See `innovations`."""

    second: np.ndarray

    def largest(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        return self.first.largest_innovations(self.second, k)


def innovations(v: np.ndarray | LazyRows, state: np.ndarray) -> np.ndarray | LazyRows:
    """``v`` - ``state``, both (m, d), where nothing but compressed innovations changes ``state``.

    So it is the same array in each round, and what the last round sent was added to it in place. A
    problem may remember what it has computed with it. After any other change pass a copy.
    """
    return LazyInnovations(v.shape, v.dtype, v, state) if isinstance(v, LazyRows) else v - state


@dataclasses.dataclass(eq=False)
class LazyMultiple(LazyRows):
    """``factor`` times the rows ``of`` (m, d)."""

    factor: float
    of: LazyRows

    def fill(self, first: int, out: np.ndarray) -> None:
        self.of.fill(first, out)
        out *= self.factor

    def __getitem__(self, workers: np.ndarray) -> LazyRows:
        return self.factor * self.of[workers]

    def take(self, ptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
        return self.factor * self.of.take(ptr, indices)


@dataclasses.dataclass(eq=False)
class Stored(LazyRows):
    """An array (m, d)."""

    array: np.ndarray

    def fill(self, first: int, out: np.ndarray) -> None:
        out[:] = self.array[first : first + len(out)]

    def __getitem__(self, workers: np.ndarray) -> LazyRows:
        return Stored((len(workers), self.shape[1]), self.dtype, self.array[workers])

    def take(self, ptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
        return coordinates(self.array, ptr, indices, self.dtype)


def coordinates(
    v: np.ndarray | LazyRows, ptr: np.ndarray, indices: np.ndarray, dtype: np.dtype
) -> np.ndarray:
    """`LazyRows.take` rounded to ``dtype``; ``v`` (m, d) may also be an array."""
    if isinstance(v, LazyRows):
        return rounded(v.take(ptr, indices), dtype)
    values = np.empty(indices.size, dtype)
    _gather(np.ascontiguousarray(v), ptr, indices, values)
    return values


@njit(cache=True)
def _gather(v, ptr, indices, values):
    for i in range(ptr.size - 1):
        for t in range(np.uint64(ptr[i]), np.uint64(ptr[i + 1])):
            values[t] = v[i, np.uint64(indices[t])]  # unsigned: no test for a negative index
