"""Messages that are values of a known number, one behind the other.

`mpisim.wire.sparse` and `mpisim.wire.factors` send some coordinates, or the factors of matrices.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from functools import cached_property, lru_cache

import numpy as np

from mpisim.core.numerics.sums import add_rows, rounded
from mpisim.wire.base import Form, Message, Packed, Precision, check_sizes, pack_tensors, same


class ValuesForm(Form):
    """Both sides know how many values each worker sends, and so the sizes."""

    @property
    @abstractmethod
    def sizes(self) -> np.ndarray:
        """Bytes of each message, shape (workers,), int64."""

    @cached_property
    def payload_bits(self) -> np.ndarray:
        """Bits of each message, shape (workers,), int64."""
        return 8 * self.sizes

    def read(self, data: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """The values in ``data``, worker by worker, as one row of wire precision."""
        check_sizes(self, data, sizes)
        return data.view(self.precision.wire)


@dataclasses.dataclass(eq=False)
class ValuesMessage(Message):
    """``values``: worker axis first, C order, wire precision; any float is allowed."""

    form: ValuesForm
    values: np.ndarray

    @property
    def payload_bits(self) -> np.ndarray:
        return self.form.payload_bits

    def encode(self) -> Packed:
        data = self.values.reshape(-1).view(np.uint8)
        return Packed(data, self.form.sizes, self.form.payload_bits)


class DenseForm(ValuesForm):
    """Messages of 32 d bits (64 d with float64 values on the wire)."""

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, d: int, workers: int, precision: Precision) -> DenseForm:
        """The form, made once: the same in every round."""
        return cls(d, workers, precision)

    @cached_property
    def sizes(self) -> np.ndarray:
        return same(self.workers, self.d * self.precision.wire.itemsize)

    def take(self, v: np.ndarray) -> Dense:
        """The message with vectors ``v`` (m, d), also tensors: a copy, rounded to the wire."""
        if isinstance(v, np.ndarray):
            return Dense(self, rounded(v, self.precision.wire))
        return pack_tensors(self, v)

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
