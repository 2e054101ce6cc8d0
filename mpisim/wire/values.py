"""Messages that are values of a known number: vectors, factors, coefficients, eigenvectors.

`mpisim.wire.sparse` has those that are some coordinates of a vector.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from math import prod
from typing import Any, ClassVar

import numpy as np
from numba import njit

from mpisim.core.numerics.sums import add_rows, rounded
from mpisim.core.numerics.triangles import ROOT_2
from mpisim.wire.base import (
    CodedMessage,
    Form,
    KernelMessage,
    Message,
    Packed,
    Precision,
    checked,
    pack_tensors,
    same,
)
from mpisim.wire.codecs import entropy
from mpisim.wire.codecs.bits import UNSIGNED, bytes_for, check, raw

UINT8 = np.dtype(np.uint8)
Shapes = tuple[tuple[int, int], ...]


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


def is_sent_itself(k: int, shape: tuple[int, int]) -> bool:
    """Whether a matrix (a, b) has fewer values than its factors of rank k, and travels itself."""
    a, b = shape
    return min(k, a, b) * (a + b) > a * b


class CodedValuesForm(ValuesForm):
    """Codec "entropy": signs and 8 upper bits of exponents are coded, the rest stands behind."""

    codec: str

    @property
    def sizes(self) -> np.ndarray | None:  # type: ignore[override]
        if self.codec == "entropy":
            return None
        return same(self.workers, prod(self.shape[1:]) * self.precision.wire.itemsize)

    def decode(self, data: np.ndarray, sizes: np.ndarray) -> Any:
        if self.codec != "entropy":
            return super().decode(data, sizes)
        data, sizes = checked(self, data, sizes)
        low, payload = self.precision.bits - 9, np.empty(self.workers, np.int64)
        shape = self.workers, prod(self.shape[1:])
        codes, lower = np.empty(shape, np.uint16), np.empty(shape, np.uint64)
        check(*entropy.read_symbols(data, sizes, codes, lower, low, payload))
        numbers = codes.astype(np.uint64) << np.uint64(low) | lower
        values = numbers.astype(UNSIGNED[self.precision.wire.itemsize]).view(self.precision.wire)
        return self.message(self, values.reshape(self.shape), payload)


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
        lower = numbers & ((np.uint64(1) << low) - np.uint64(1))
        data, self.payload = entropy.write_symbols(codes, lower, int(low))
        return Packed(data, bytes_for(self.payload), self.payload)


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
    """Matrices of the given ``shapes`` and of rank k at most, one behind the other.

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
def _add_matrices(rows, start, x):
    """rows[i, start:] += x_i, row by row."""
    m, a, b = x.shape
    for i in range(m):
        to = min(i, rows.shape[0] - 1)
        for j in range(a):
            for c in range(b):
                rows[to, start + j * b + c] += x[i, j, c]


@njit(cache=True)
def _add_products(rows, start, p, q):
    """rows[i, start:] += p_i q_i^T, row by row, each sum over the rank in its order."""
    m, a, r = p.shape
    b = q.shape[1]
    for i in range(m):
        to = min(i, rows.shape[0] - 1)
        for j in range(a):
            for c in range(b):
                value = p[i, j, 0] * q[i, c, 0]
                for t in range(1, r):
                    value += p[i, j, t] * q[i, c, t]
                rows[to, start + j * b + c] += value


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


class Spectral(CodedValues):
    """``values``: (m, k, D + 1), an eigenvalue and its vector in each row.

    Decodes to the triangle of sum_t lambda_t u_t u_t^T (`mpisim.core.numerics.triangles`).
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
