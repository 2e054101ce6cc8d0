"""Messages that are factors of matrices, or eigenvectors with their eigenvalues."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Iterator
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numba import njit

from mpisim.core.numerics.eigen import ROOT_2
from mpisim.wire.base import CodedMessage, KernelMessage, Message, Packed, checked, same
from mpisim.wire.codecs import entropy
from mpisim.wire.codecs.bits import UNSIGNED, bytes_for, raw
from mpisim.wire.values import ValuesForm, ValuesMessage

MEDIAN = 0.6745  # of the size of a normal variable
Shapes = tuple[tuple[int, int], ...]


def is_sent_itself(k: int, shape: tuple[int, int]) -> bool:
    """Whether a matrix (a, b) has fewer values than its factors of rank k, and travels itself."""
    a, b = shape
    return min(k, a, b) * (a + b) > a * b


class CodedValuesForm(ValuesForm):
    """Codec "entropy": signs and 8 upper bits of exponents are coded, the rest follows."""

    codec: str

    @abstractmethod
    def typical(self, values: np.ndarray) -> np.ndarray:
        """Of the values of vectors of length one, the 8 bits that are expected; of others 0.

        values : those of messages, shape (m, n), of which only the others are read
        """

    @property
    def sizes(self) -> np.ndarray | None:  # type: ignore[override]
        if self.codec == "entropy":
            return None
        return same(self.workers, prod(self.shape[1:]) * self.precision.wire.itemsize)

    def decode(self, data: np.ndarray, sizes: np.ndarray) -> Any:
        if self.codec != "entropy":
            return super().decode(data, sizes)
        data, sizes = checked(self, data, sizes)
        count = prod(self.shape[1:])
        lower = np.empty((self.workers, count), np.uint64)
        codes, payload = entropy.read_symbols(data, sizes, count, lower, self.precision.bits - 9)
        _align(codes, self.typical(self._values(codes, lower)), -1)
        return self.message(self, self._values(codes, lower).reshape(self.shape), payload)

    def _values(self, codes: np.ndarray, lower: np.ndarray) -> np.ndarray:
        """Floats of their upper and lower bits."""
        numbers = codes.astype(np.uint64) << np.uint64(self.precision.bits - 9) | lower
        return numbers.astype(UNSIGNED[self.precision.wire.itemsize]).view(self.precision.wire)


def exponents(values: np.ndarray) -> np.ndarray:
    """The 8 upper bits of the exponents of floats, in their shape, int64."""
    shift = np.uint64(8 * values.itemsize - 9)
    return (raw(values) >> shift & np.uint64(255)).astype(np.int64)


@dataclasses.dataclass(eq=False)
class CodedValues(ValuesMessage, CodedMessage):
    """Messages of a `CodedValuesForm`."""

    payload: np.ndarray | None = None

    @property
    def payload_bits(self) -> np.ndarray:
        if self.form.codec == "entropy":
            return CodedMessage.payload_bits.fget(self)  # type: ignore[attr-defined]
        return self.form.payload_bits

    arrived = Message.arrived

    def encode(self) -> Packed:
        if self.form.codec != "entropy":
            return super().encode()
        low = np.uint64(self.form.precision.bits - 9)
        shape = self.form.workers, prod(self.form.shape[1:])
        numbers = raw(self.values).astype(np.uint64).reshape(shape)
        codes = (numbers >> low).astype(np.uint16)
        _align(codes, self.form.typical(self.values.reshape(shape)), 1)
        lower = numbers & ((np.uint64(1) << low) - np.uint64(1))
        data, self.payload = entropy.write_symbols(codes, lower, int(low))
        return Packed(data, bytes_for(self.payload), self.payload)


@njit(cache=True)
def _align(codes, typical, side):
    """Move exponents of unit vectors to the median of the others (``side`` 1), or back (-1).

    So all of a message have the same model. Zeros stay; the others go round from 255 to 1.
    """
    for i in range(len(codes)):
        row, counts = codes[i], np.zeros(256, np.int64)
        for j in range(row.size):
            counts[row[j] & 255] += typical[i, j] == 0
        half, median = (counts[1:].sum() + 1) // 2, 0
        while half > 0:
            median += 1
            half -= counts[median]
        for j in range(row.size):
            exponent = np.int64(row[j] & 255)
            if typical[i, j] > 0 and exponent > 0 and median > 0:
                moved = (exponent - 1 + side * (median - typical[i, j])) % 255 + 1
                row[j] = (row[j] & 256) | moved


@dataclasses.dataclass(eq=False)
class Factors(KernelMessage, CodedValues):
    """``values``: shape (m, values of a message)."""

    def layer_bits(self) -> np.ndarray | None:
        if self.form.codec == "entropy":
            return None
        bits = self.form.precision.bits * np.array(self.form.counts, np.int64)
        return np.tile(bits, (self.form.workers, 1))

    def put(self, rows: np.ndarray, add: bool) -> None:
        start, parts = 0, self.form.parts(self.in_arithmetic())
        for (a, b), matrices in zip(self.form.shapes, parts, strict=True):
            if len(matrices) == 1:
                _add_matrices(rows, start, np.ascontiguousarray(matrices[0]))
            else:
                _add_products(rows, start, *map(np.ascontiguousarray, matrices))
            start += a * b


@dataclasses.dataclass(eq=False)
class FactorsForm(CodedValuesForm):
    """Matrices of the given ``shapes`` and of rank k at most, one after another.

    A matrix X (a, b) travels as P (a, r) and then Q (b, r), row by row, r = min(k, a, b), and is
    P Q^T; where that is more than a b values, as X itself.
    """

    message = Factors
    shapes: Shapes
    k: int
    codec: str = "paper"

    @cached_property
    def counts(self) -> list[int]:
        """Values of each matrix in one message."""
        return [min(min(self.k, a, b) * (a + b), a * b) for a, b in self.shapes]

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        return self.workers, sum(self.counts)

    def typical(self, values: np.ndarray) -> np.ndarray:
        """Of the shorter factor, whose columns have length one: as spread as the longer one's."""
        typical = np.zeros(values.shape, self.precision.wire)
        both = zip(self.shapes, self.parts(values), self.parts(typical), strict=True)
        for (a, b), parts, sizes in both:
            if len(parts) == 2:
                unit = int(a >= b)
                sizes[unit][:] = _typical_sizes(parts[1 - unit], min(a, b))[:, None, None]
        return exponents(typical)

    def parts(self, values: np.ndarray) -> Iterator[list[np.ndarray]]:
        """[P (m, a, r), Q (m, b, r)] or [X (m, a, b)] of each matrix: views of ``values``.

        values : shape (m, values of a message)
        """
        m, start = len(values), 0
        for count, shape in zip(self.counts, self.shapes, strict=True):
            (a, b), r = shape, min(self.k, *shape)
            part = values[:, start : start + count]
            if is_sent_itself(self.k, shape):
                yield [part.reshape(m, a, b)]
            else:
                yield [part[:, : r * a].reshape(m, a, r), part[:, r * a :].reshape(m, b, r)]
            start += count


@njit(cache=True)
def _typical_sizes(p, length):
    """The median size in each of p (m, n, r), if columns had length one and ``length`` entries.

    That of normal entries, where a column is zero or its squares have no finite sum.
    """
    m, n, r = p.shape
    out, sizes = np.full(m, MEDIAN / np.sqrt(length)), np.empty(n * r)
    for i in range(m):
        finite = True
        for t in range(r):
            squares = 0.0
            for j in range(n):
                squares += np.float64(p[i, j, t]) ** 2
            finite &= 0 < squares < np.inf
            for j in range(n if finite else 0):
                sizes[t * n + j] = abs(np.float64(p[i, j, t])) / np.sqrt(squares)
        if finite:
            out[i] = np.sort(sizes)[(sizes.size - 1) // 2] * np.sqrt(n / length)
    return out


@njit(cache=True)
def _add_matrices(rows, start, x):
    """rows[i, start:] += x_i, row by row."""
    m, a, b = x.shape
    for i in range(m):
        to = i * rows.shape[0] // m
        for j in range(a):
            for c in range(b):
                rows[to, start + j * b + c] += x[i, j, c]


@njit(cache=True)
def _add_products(rows, start, p, q):
    """rows[i, start:] += p_i q_i^T, row by row, each sum over the rank in its order."""
    m, a, r = p.shape
    b = q.shape[1]
    for i in range(m):
        to = i * rows.shape[0] // m
        for j in range(a):
            for c in range(b):
                value = p[i, j, 0] * q[i, c, 0]
                for t in range(1, r):
                    value += p[i, j, t] * q[i, c, t]
                rows[to, start + j * b + c] += value


class Spectral(CodedValues):
    """``values``: (m, k, D + 1), an eigenvalue and its vector in each row.

    Decodes to the triangle of sum_t lambda_t u_t u_t^T (`mpisim.core.numerics.eigen`).
    """

    def decoded(self) -> np.ndarray:
        out = np.zeros((self.form.workers, self.form.d), self.form.precision.arithmetic)
        _add(out, self.in_arithmetic())
        return out


@dataclasses.dataclass(eq=False)
class SpectralForm(CodedValuesForm):
    """``k`` pairs of a matrix with ``side`` rows, d = side (side + 1) / 2."""

    message = Spectral
    side: int
    k: int
    codec: str = "paper"

    @property
    def shape(self) -> tuple[int, int, int]:  # type: ignore[override]
        return self.workers, self.k, self.side + 1

    def typical(self, values: np.ndarray) -> np.ndarray:
        """Of the vectors' entries, as of normal ones; those of eigenvalues are not known."""
        pair = np.zeros(self.side + 1, self.precision.wire)
        pair[1:] = MEDIAN / self.side**0.5
        return np.tile(exponents(pair), (len(values), self.k))


@njit(cache=True)
def _add(out, values):
    """out[i] += the triangle of worker i, pair after pair."""
    m, k, side = values.shape[0], values.shape[1], values.shape[2] - 1
    root = out.dtype.type(ROOT_2)
    for i in range(m):
        for t in range(k):
            scale, u, place = values[i, t, 0], values[i, t, 1:], 0
            for a in range(side):
                factor = scale * u[a]
                for b in range(a):
                    out[i, place + b] += root * factor * u[b]
                out[i, place + a] += factor * u[a]
                place += a + 1
