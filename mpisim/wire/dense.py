"""Whole vectors: d values of a known number of bits each, and nothing else."""

from __future__ import annotations

import dataclasses

import numpy as np

from mpisim.core.ordered_sums import add_rows
from mpisim.wire.base import Form, Message, Packed, Precision, check_sizes, same


@dataclasses.dataclass(eq=False)
class DenseForm(Form):
    """Messages of 32 d bits (64 d with float64 values on the wire); sizes are known."""

    d: int
    workers: int
    precision: Precision

    @property
    def sizes(self) -> np.ndarray:
        return same(self.workers, self.d * self.precision.wire.itemsize)

    def decode(self, data: np.ndarray, sizes: np.ndarray) -> Dense:
        check_sizes(self, data, sizes)
        return Dense(self, data.view(self.precision.wire).reshape(self.workers, self.d))


@dataclasses.dataclass(eq=False)
class Dense(Message):
    """``values``: shape (m, d), C order, wire precision; any float is allowed."""

    form: DenseForm
    values: np.ndarray

    @property
    def payload_bits(self) -> np.ndarray:
        return 8 * self.form.sizes

    def encode(self) -> Packed:
        sizes = self.form.sizes
        return Packed(self.values.reshape(-1).view(np.uint8), sizes, 8 * sizes)

    def decoded(self) -> np.ndarray:
        return self.values.astype(self.form.precision.arithmetic, copy=False)

    def total(self) -> np.ndarray:
        precision = self.form.precision
        rows = self.values
        if precision.wire.itemsize > precision.arithmetic.itemsize:
            rows = self.decoded()
        total = np.zeros(self.form.d, precision.arithmetic)
        add_rows(total, rows)
        return total
