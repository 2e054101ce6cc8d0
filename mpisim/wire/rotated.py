"""Messages of rotated vectors: what crosses the wire is the message of another form."""

from __future__ import annotations

import dataclasses

import numpy as np
from numba import njit

from mpisim.wire.base import Carried, CarriedForm


class Rotated(Carried):
    """``inner``: the messages of the rotated vectors."""

    def decoded(self) -> np.ndarray:
        """R_i^T of the rotated vectors, without the coordinates behind the first d."""
        form = self.form
        x = self.inner.decoded().astype(np.float64)
        hadamard(x)
        x *= form.flips
        return x[:, : form.d].astype(form.precision.arithmetic)


@dataclasses.dataclass(eq=False)
class RotatedForm(CarriedForm):
    """Messages of R_i v_i, R_i = H diag(flips_i) / sqrt(D) with Sylvester's Hadamard matrix H.

    inner : the form of the rotated vectors, in dimension D, the next power of two from d on
    flips : 1 or -1, shape (workers, D), float64; v_i has zeros behind its d coordinates
    """

    message = Rotated
    flips: np.ndarray

    def rotate(self, v: np.ndarray) -> np.ndarray:
        """R_i v_i, shape (workers, D), float64, of ``v`` (workers, d)."""
        z = np.zeros((len(v), self.inner.d))
        z[:, : self.d] = v
        z *= self.flips
        hadamard(z)
        return z


@njit(cache=True)
def hadamard(rows):
    """rows_i = H rows_i / sqrt(D), in place, in D log2 D additions; D is a power of two."""
    m, size = rows.shape
    scale = 1 / np.sqrt(size)
    for i in range(m):
        row, half = rows[i], 1
        while half < size:
            for start in range(0, size, 2 * half):
                for j in range(start, start + half):
                    a, b = row[j], row[j + half]
                    row[j], row[j + half] = a + b, a - b
            half *= 2
        for j in range(size):
            row[j] *= scale
