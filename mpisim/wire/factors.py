"""Vectors that consist of matrices of low rank: two factors of each, and nothing else.

A matrix X (a, b) travels as P (a, r) and then Q (b, r), row by row, r = min(k, a, b), and is
P Q^T. Several matrices follow each other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numba import njit

from mpisim.wire.base import same
from mpisim.wire.dense import ValuesForm, ValuesMessage

Shapes = tuple[tuple[int, int], ...]


@dataclasses.dataclass(eq=False)
class FactorsForm(ValuesForm):
    """Matrices of the given ``shapes`` and of rank k at most."""

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

    @property
    def sizes(self) -> np.ndarray:
        return same(self.workers, self.count * self.precision.wire.itemsize)

    def pairs(self, values: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
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
        return Factors(self, self.read(data, sizes).reshape(self.workers, self.count))


class Factors(ValuesMessage):
    """``values``: shape (m, form.count)."""

    form: FactorsForm

    def layer_bits(self) -> np.ndarray:
        form = self.form
        pairs = zip(form.ranks, form.shapes, strict=True)
        own = [form.precision.bits * r * (a + b) for r, (a, b) in pairs]
        return np.tile(np.array(own, np.int64), (form.workers, 1))

    def decoded(self) -> np.ndarray:
        out = np.zeros((self.form.workers, self.form.d), self.form.precision.arithmetic)
        self.add_to(out)
        return out

    def add_to(self, rows: np.ndarray) -> None:
        form, start = self.form, 0
        # a block without workers has no shape to reshape to
        values = self.values.astype(form.precision.arithmetic, copy=False)
        for p, q in form.pairs(values) if form.workers else ():
            size = p.shape[1] * q.shape[1]
            _add_products(rows, start, np.ascontiguousarray(p), np.ascontiguousarray(q))
            start += size


@njit(cache=True)
def _add_products(rows, start, p, q):
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
