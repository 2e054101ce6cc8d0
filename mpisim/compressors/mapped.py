"""Messages that receivers multiply by a symmetric matrix of each worker: L_i^{1/2} C(...)."""

from __future__ import annotations

import dataclasses

import numpy as np
from numba import njit

from mpisim.wire.base import Form, Message, Packed


class MappedForm(Form):
    """Messages of the form ``inner``, decoded and multiplied by matrices[which[t]] for worker t.

    matrices : array, shape (workers known, d, d), symmetric, or their diagonals (workers known, d);
        arithmetic precision
    which : array, shape (workers,), int64
    """

    def __init__(self, inner: Form, matrices: np.ndarray, which: np.ndarray):
        super().__init__(inner.d, inner.workers, inner.precision)
        self.inner, self.matrices, self.which = inner, matrices, which

    @property
    def sizes(self) -> np.ndarray | None:
        return self.inner.sizes

    def decode(self, data: np.ndarray, sizes: np.ndarray) -> Mapped:
        return Mapped(self, self.inner.decode(data, sizes))


@dataclasses.dataclass(eq=False)
class Mapped(Message):
    """``message`` is what travels; `decoded` applies the matrices."""

    form: MappedForm
    message: Message

    @property
    def payload_bits(self) -> np.ndarray:
        return self.message.payload_bits

    def encode(self) -> Packed:
        return self.message.encode()

    def decoded(self) -> np.ndarray:
        return products(self.form.matrices, self.form.which, self.message.decoded())


def products(matrices: np.ndarray, which: np.ndarray, v: np.ndarray) -> np.ndarray:
    """matrices[which[t]] v_t for ``v`` (m, d), shape (m, d); matrices as in `MappedForm`."""
    return matrices[which] * v if matrices.ndim == 2 else _products(matrices, which, v)


@njit(cache=True)
def _products(matrices, which, v):
    """The products with (d, d) matrices.

    Adds the rows of the symmetric matrix times their coordinates, in ascending order: the same bits
    for any block, and coordinates that are 0 cost nothing.
    """
    out = np.zeros(v.shape, v.dtype)
    for t in range(v.shape[0]):
        matrix, row = matrices[which[t]], out[t]
        for j in range(v.shape[1]):
            x = v[t, j]
            if x != 0:
                line = matrix[j]
                for k in range(row.size):
                    row[k] += x * line[k]
    return out
