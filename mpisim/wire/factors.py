"""Vectors that consist of matrices of low rank: two factors of each, and nothing else.

A matrix X (a, b) travels as P (a, r) and then Q (b, r), row by row, r = min(k, a, b), and is
P Q^T; where that is more than a b values, as X itself. Several matrices follow each other.
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


def whole(k: int, shape: tuple[int, int]) -> bool:
    """Whether a matrix (a, b) has fewer values than its factors of rank k, and travels itself."""
    a, b = shape
    return min(k, a, b) * (a + b) > a * b


@dataclasses.dataclass(eq=False)
class FactorsForm(ValuesForm):
    """Matrices of the given ``shapes`` and of rank k at most."""

    shapes: Shapes
    k: int

    @cached_property
    def counts(self) -> list[int]:
        """Values of each matrix in one message."""
        return [min(min(self.k, a, b) * (a + b), a * b) for a, b in self.shapes]

    @property
    def count(self) -> int:
        """Values of one message."""
        return sum(self.counts)

    @property
    def sizes(self) -> np.ndarray:
        return same(self.workers, self.count * self.precision.wire.itemsize)

    def parts(self, values: np.ndarray) -> Iterator[list[np.ndarray]]:
        """[P (m, a, r), Q (m, b, r)] or [X (m, a, b)] of each matrix: views of ``values``.

        values : shape (m, count)
        """
        start = 0
        for count, (a, b) in zip(self.counts, self.shapes, strict=True):
            own, r = values[:, start : start + count], min(self.k, a, b)
            if whole(self.k, (a, b)):
                yield [own.reshape(-1, a, b)]
            else:
                yield [own[:, : r * a].reshape(-1, a, r), own[:, r * a :].reshape(-1, b, r)]
            start += count

    def decode(self, data: np.ndarray, sizes: np.ndarray) -> Factors:
        return Factors(self, self.read(data, sizes).reshape(self.workers, self.count))


class Factors(ValuesMessage):
    """``values``: shape (m, form.count)."""

    form: FactorsForm

    def layer_bits(self) -> np.ndarray:
        own = self.form.precision.bits * np.array(self.form.counts, np.int64)
        return np.tile(own, (self.form.workers, 1))

    def decoded(self) -> np.ndarray:
        out = np.zeros((self.form.workers, self.form.d), self.form.precision.arithmetic)
        self.add_to(out)
        return out

    def add_to(self, rows: np.ndarray) -> None:
        form, start = self.form, 0
        # a block without workers has no shape to reshape to
        values = self.values.astype(form.precision.arithmetic, copy=False)
        parts = form.parts(values) if form.workers else ()
        for (a, b), own in zip(form.shapes, parts, strict=False):
            if len(own) == 1:
                rows[:, start : start + a * b] += own[0].reshape(-1, a * b)
            else:
                _add_products(rows, start, *map(np.ascontiguousarray, own))
            start += a * b


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
