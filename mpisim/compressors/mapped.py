"""Messages that receivers map with a symmetric matrix of each worker: L_i^{1/2} C(...)."""

from __future__ import annotations

import dataclasses

import numpy as np
from numba import njit

from mpisim.wire.base import Form, Message, Packed


class MappedForm(Form):
    """Messages of the form ``inner``; worker t's decoded vector is matrices[which[t]] times it.

    matrices : array, shape (workers known, d, d), symmetric, arithmetic precision
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
    """matrices[which[t]] v_t for vectors ``v`` (m, d), shape (m, d).

    Row after row of the symmetric matrix, times its coordinate, in ascending order: the same bits
    for any block, and coordinates that are 0 cost nothing.
    """
    out = np.zeros(v.shape, v.dtype)
    _products(matrices, which, np.ascontiguousarray(v), out)
    return out


@njit(cache=True)
def _products(matrices, which, v, out):
    for t in range(v.shape[0]):
        matrix, row = matrices[which[t]], out[t]
        for j in range(v.shape[1]):
            x = v[t, j]
            if x != 0:
                line = matrix[j]
                for k in range(row.size):
                    row[k] += x * line[k]
