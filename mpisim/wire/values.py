"""Messages that are values of a known number: vectors, coefficients.

`mpisim.wire.sparse` has those that are some coordinates of a vector, `mpisim.wire.factors` factors
and eigenvectors.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from numba import njit

from mpisim.core.numerics.sums import add_rows, rounded
from mpisim.wire.base import Form, Message, Packed, Precision, checked, pack_tensors, same

UINT8 = np.dtype(np.uint8)


class ValuesForm(Form):
    """Both sides know how many values each worker sends, and so the sizes.

    message : the class of its messages
    shape : of their values
    """

    message: ClassVar[Callable[..., Any]]
    shape: Any = (-1,)
    sizes: Any = None

    @cached_property
    def payload_bits(self) -> np.ndarray:
        """Those of its messages, which have neither headers nor padding."""
        return 8 * self.sizes

    def decode(self, data: np.ndarray, sizes: np.ndarray) -> Any:
        data, _ = checked(self, data, sizes)
        return self.message(self, data.view(self.precision.wire).reshape(self.shape))


@dataclasses.dataclass(eq=False)
class ValuesMessage(Message):
    """``values``: worker axis first, C order, wire precision; any float is allowed."""

    form: Any
    values: np.ndarray

    @property
    def payload_bits(self) -> np.ndarray:
        return self.form.payload_bits

    def encode(self) -> Packed:
        form = self.form
        return Packed(self.values.ravel().view(UINT8), form.sizes, form.payload_bits)

    def arrived(self, packed: Packed) -> Message:
        return self  # the bytes are those of ``values``

    def in_arithmetic(self) -> np.ndarray:
        """``values`` in arithmetic precision."""
        return self.values.astype(self.form.precision.arithmetic, copy=False)


class Dense(ValuesMessage):
    """``values``: shape (m, d)."""

    def decoded(self) -> np.ndarray:
        return self.values.astype(self.form.precision.arithmetic, copy=False)

    def total(self) -> np.ndarray:
        precision, rows = self.form.precision, self.values
        if precision.wire.itemsize > precision.arithmetic.itemsize:
            rows = self.decoded()
        total = np.zeros(self.form.d, precision.arithmetic)
        add_rows(total, rows)
        return total


class DenseForm(ValuesForm):
    """Messages of 32 d bits (64 d with float64 values on the wire)."""

    message = Dense

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, d: int, workers: int, precision: Precision) -> DenseForm:
        """The form, made once: the same in every round."""
        return cls(d, workers, precision)

    @cached_property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        return self.workers, self.d

    @cached_property
    def sizes(self) -> np.ndarray:  # type: ignore[override]
        return same(self.workers, self.d * self.precision.wire.itemsize)

    def take(self, v: np.ndarray) -> Dense:
        """The message with vectors ``v`` (m, d), also tensors: a copy, rounded to the wire."""
        if isinstance(v, np.ndarray):
            return Dense(self, rounded(v, self.precision.wire))
        return pack_tensors(self, v)


class Synthesized(ValuesMessage):
    """``values``: the coefficients, worker by worker, shape (form.counts.sum(),)."""

    def decoded(self) -> np.ndarray:
        form = self.form
        out = np.zeros((form.workers, form.d), form.precision.arithmetic)
        _combine(out, form.ptr, form.rows, form.which, self.in_arithmetic())
        return out


@dataclasses.dataclass(eq=False)
class SynthesisForm(ValuesForm):
    """Combinations of given rows: the coefficients travel, both sides know whose rows they are for.

    ptr : array, shape (maps + 1,), int64
        Map j has the rows ``rows[ptr[j]:ptr[j+1]]``.
    rows : array, shape (ptr[-1], d), arithmetic precision
    which : array, shape (workers,), int64
        The map of each worker.
    """

    message = Synthesized
    ptr: np.ndarray
    rows: np.ndarray
    which: np.ndarray

    @property
    def counts(self) -> np.ndarray:
        """Coefficients of each worker, shape (workers,), int64."""
        return self.ptr[self.which + 1] - self.ptr[self.which]

    @property
    def sizes(self) -> np.ndarray:
        return self.counts * self.precision.wire.itemsize


@njit(cache=True)
def _combine(out, ptr, rows, which, values):
    """out[i] = sum_t values[t] rows[t] over the rows of worker i's map, in their order."""
    t = 0
    for i in range(which.size):
        for r in range(ptr[which[i]], ptr[which[i] + 1]):
            for j in range(out.shape[1]):
                out[i, j] += values[t] * rows[r, j]
            t += 1
