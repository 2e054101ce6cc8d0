"""Whole vectors: d values of a known number of bits each, and nothing else."""

from __future__ import annotations

import dataclasses

import numpy as np

from mpisim.core.ordered_sums import add_rows
from mpisim.wire.base import Precision, same
from mpisim.wire.values import ValuesForm, ValuesMessage


@dataclasses.dataclass(eq=False)
class DenseForm(ValuesForm):
    """Messages of 32 d bits (64 d with float64 values on the wire)."""

    d: int
    workers: int
    precision: Precision

    @property
    def sizes(self) -> np.ndarray:
        return same(self.workers, self.d * self.precision.wire.itemsize)

    def decode(self, data: np.ndarray, sizes: np.ndarray) -> Dense:
        return Dense(self, self.read(data, sizes).reshape(self.workers, self.d))


class Dense(ValuesMessage):
    """``values``: shape (m, d)."""

    form: DenseForm

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
