"""Vectors that are combinations of given rows: only the coefficients travel."""

from __future__ import annotations

import dataclasses

import numpy as np
from numba import njit

from mpisim.wire.dense import ValuesForm, ValuesMessage


@dataclasses.dataclass(eq=False)
class SynthesisForm(ValuesForm):
    """Both sides know the rows that the coefficients of each worker belong to.

    ptr : array, shape (maps + 1,), int64
        Map j has the rows ``rows[ptr[j]:ptr[j+1]]``.
    rows : array, shape (ptr[-1], d), arithmetic precision
    which : array, shape (workers,), int64
        The map of each worker.
    """

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

    def decode(self, data: np.ndarray, sizes: np.ndarray) -> Synthesized:
        return Synthesized(self, self.read(data, sizes))


class Synthesized(ValuesMessage):
    """``values``: the coefficients, worker by worker, shape (form.counts.sum(),)."""

    form: SynthesisForm

    def decoded(self) -> np.ndarray:
        form = self.form
        out = np.zeros((form.workers, form.d), form.precision.arithmetic)
        values = self.values.astype(form.precision.arithmetic, copy=False)
        _combine(out, form.ptr, form.rows, form.which, values)
        return out


@njit(cache=True)
def _combine(out, ptr, rows, which, values):
    """out[i] = sum_t values[t] rows[t] over the rows of worker i's map, in their order."""
    t = 0
    for i in range(which.size):
        for r in range(ptr[which[i]], ptr[which[i] + 1]):
            for j in range(out.shape[1]):
                out[i, j] += values[t] * rows[r, j]
            t += 1
