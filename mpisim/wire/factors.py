"""Vectors that consist of matrices of low rank: two factors of each, and nothing else.

A matrix X (a, b) travels as P (a, r) and then Q (b, r), row by row, r = min(k, a, b), and is
P Q^T; several matrices one behind the other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numba import njit

from mpisim.wire.base import Form, Message, Packed, Precision, check_sizes

Shapes = tuple[tuple[int, int], ...]


@dataclasses.dataclass(frozen=True, eq=False)
class FactorsForm(Form):
    """Matrices of the given ``shapes`` and of rank k at most; sizes are known."""

    d: int
    workers: int
    precision: Precision
    shapes: Shapes
    k: int

    @property
    def ranks(self) -> list[int]:
        """r of each matrix."""
        return [min(self.k, *shape) for shape in self.shapes]

    @cached_property
    def count(self) -> int:
        """Values of one message."""
        return sum(r * (a + b) for r, (a, b) in zip(self.ranks, self.shapes, strict=True))

    @cached_property
    def sizes(self) -> np.ndarray:  # type: ignore[override]
        return np.full(self.workers, self.count * self.precision.wire.itemsize, np.int64)

    def parts(self, values: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """P (m, a, r) and Q (m, b, r) of each matrix: views of ``values`` (m, count)."""
        start = 0
        for r, (a, b) in zip(self.ranks, self.shapes, strict=True):
            middle, stop = start + r * a, start + r * (a + b)
            yield (
                values[:, start:middle].reshape(-1, a, r),
                values[:, middle:stop].reshape(-1, b, r),
            )
            start = stop

    def decode(self, data: np.ndarray, sizes: np.ndarray) -> Factors:
        check_sizes(self, data, sizes)
        return Factors(self, data.view(self.precision.wire).reshape(self.workers, self.count))


@dataclasses.dataclass(frozen=True, eq=False)
class Factors(Message):
    """``values``: shape (m, form.count), C order, wire precision; any float is allowed."""

    form: FactorsForm
    values: np.ndarray

    @property
    def payload_bits(self) -> np.ndarray:
        return 8 * self.form.sizes

    def encode(self) -> Packed:
        sizes = self.form.sizes
        return Packed(self.values.reshape(-1).view(np.uint8), sizes, 8 * sizes)

    def decoded(self) -> np.ndarray:
        out = np.zeros((self.form.workers, self.form.d), self.form.precision.arithmetic)
        self.add_to(out)
        return out

    def add_to(self, rows: np.ndarray) -> None:
        form, start = self.form, 0
        # a block without workers has no shape to reshape to
        values = self.values.astype(form.precision.arithmetic, copy=False)
        for p, q in form.parts(values) if form.workers else ():
            size = p.shape[1] * q.shape[1]
            add_products(rows, start, np.ascontiguousarray(p), np.ascontiguousarray(q))
            start += size


@njit(cache=True)
def add_products(rows, start, p, q):
    """rows[i, start:] += p_i q_i^T, row by row, each sum over the rank in its order."""
    m, a, r = p.shape
    b = q.shape[1]
    for i in range(m):
        for j in range(a):
            for c in range(b):
                value = p[i, j, 0] * q[i, c, 0]
                for t in range(1, r):
                    value += p[i, j, t] * q[i, c, t]
                rows[i, start + j * b + c] += value
