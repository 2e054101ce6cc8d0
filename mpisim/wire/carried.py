"""Messages of rotated vectors, and of directions with a length.

What crosses the wire is the message of another form. Both sides draw rotations and directions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
from numba import njit

from mpisim.core.numerics.lanes import dot
from mpisim.core.rng import Draw, normals
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


class Directions(Carried):
    """``inner``: the lengths, and which direction each worker names."""

    def decoded(self) -> np.ndarray:
        lengths, which = self.inner.scales.astype(np.float64)[:, 0], self.inner.which[:, 0]
        rows = zip(lengths, self.form.rows(which), strict=True)
        out = np.empty((self.form.workers, self.form.d), self.form.precision.arithmetic)
        for i, (length, row) in enumerate(rows):
            out[i] = length * row
        return out


@dataclasses.dataclass(eq=False)
class DirectionsForm(CarriedForm):
    """2^b directions for each worker: t is the normal numbers of the purpose ".../direction t".

    inner : the form of a length and a point, of 2^b
    draw : the workers' random numbers
    """

    message = Directions
    draw: Draw

    def nearest(self, v: np.ndarray) -> np.ndarray:
        """Which direction has the least angle to each of ``v`` (workers, d), shape (workers, 1)."""
        which, best = np.zeros(len(v), np.int64), np.full(len(v), -np.inf)
        rows = np.ascontiguousarray(v, np.float64)
        for t in range(self.inner.points.size):
            draw = dataclasses.replace(self.draw, purpose=self._purpose(t))
            _compare(rows, normals(draw.words(self.d)), t, best, which)
        return which[:, None]

    def rows(self, which: np.ndarray) -> Iterator[np.ndarray]:
        """The unit vectors ``which`` (workers,)."""
        draw, workers = self.draw, zip(self.draw.members, self.draw.repetitions, strict=True)
        for (member, repetition), t in zip(workers, which.tolist(), strict=True):
            address = draw.round, draw.first + int(member), 1, self.d, draw.message, int(repetition)
            row = normals(draw.streams.raw(self._purpose(t), *address))[0]
            yield row / np.sqrt(dot(row, row))

    def _purpose(self, t: int) -> str:
        return f"{self.draw.purpose}/direction {t}"


@njit(cache=True)
def _compare(v, rows, t, best, which):
    """Worker i prefers direction t, rows[i], if its angle to v[i] is less than all before."""
    for i in range(len(v)):
        cosine = dot(v[i], rows[i]) / np.sqrt(dot(rows[i], rows[i]))
        if cosine > best[i]:
            best[i], which[i] = cosine, t
