"""Messages made of other messages: of parts of each vector, or of the coordinates that are kept;
and of rotated vectors, or of directions with a length, which both sides draw.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numba import njit

from mpisim.core.errors import WireError
from mpisim.core.numerics.lanes import dot
from mpisim.core.rng import Draw, normals
from mpisim.wire.base import Carried, CarriedForm, Form, Message, Packed, Precision, checked
from mpisim.wire.sparse import Seeded, SeededForm

LENGTH_BYTES = 4


def _starts_of(sizes: np.ndarray) -> np.ndarray:
    """Where each message starts, in bytes."""
    return np.cumsum(sizes) - sizes


def _cut(data: np.ndarray, starts: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The bytes of ``data`` from each of ``starts`` on, one after another."""
    piece = np.empty(sizes.sum(), np.uint8)
    _copy(data, starts, piece, _starts_of(sizes), sizes)
    return piece


def _paste(packed: Packed, data: np.ndarray, starts: np.ndarray) -> None:
    """Put each message of ``packed`` into ``data``, from ``starts`` on."""
    _copy(packed.data, _starts_of(packed.sizes), data, starts, packed.sizes)


@njit(cache=True)
def _copy(source, froms, target, tos, sizes):
    """sizes[i] bytes from froms[i] of ``source`` to tos[i] of ``target``, for all i."""
    for i in range(sizes.size):
        for t in range(sizes[i]):
            target[tos[i] + t] = source[froms[i] + t]


class PartsForm(Form):
    """Vectors in parts, one message for each part of a worker's vector.

    A worker's parts follow each other, each padded to bytes. In front of them stand the sizes that
    only the sender knows, in bytes, 32 bits each (framing); that of the last such part follows from
    the length of the message.

    forms : of the parts, which are coordinates starts[l] to starts[l+1] - 1
    """

    def __init__(self, workers: int, precision: Precision, forms: tuple[Form, ...]):
        self.starts = np.cumsum([0, *(form.d for form in forms)])
        super().__init__(int(self.starts[-1]), workers, precision)
        self.forms = forms

    @cached_property
    def unknown(self) -> list[int]:
        """The parts whose sizes only the sender knows."""
        return [part for part, form in enumerate(self.forms) if form.sizes is None]

    @property
    def head(self) -> int:
        """Bytes of the sizes in front of a message."""
        return LENGTH_BYTES * max(0, len(self.unknown) - 1)

    @cached_property
    def sizes(self) -> np.ndarray | None:  # type: ignore[override]
        if self.unknown:
            return None
        return np.array([form.sizes for form in self.forms]).sum(axis=0)

    def decode(self, data: np.ndarray, sizes: np.ndarray) -> Parts:
        data, sizes = checked(self, data, sizes)
        begin = _starts_of(sizes)
        at, parts = begin + self.head, []
        for form, part in zip(self.forms, self._sizes_of_parts(data, sizes, begin), strict=True):
            parts.append(form.decode(_cut(data, at, part), part))
            at = at + part
        return Parts(self, tuple(parts))

    def _sizes_of_parts(self, data: np.ndarray, sizes: np.ndarray, begin: np.ndarray) -> np.ndarray:
        """Bytes of each part of each message, shape (parts, workers); `WireError` if wrong."""
        if (sizes < self.head).any():
            raise WireError("a message is too short for the sizes of its parts")
        each = np.zeros((len(self.forms), self.workers), np.int64)
        for part, form in enumerate(self.forms):
            if form.sizes is not None:
                each[part] = form.sizes
        heads = data[begin[:, None] + np.arange(self.head)].view("<u4")  # (workers, head / 4)
        each[self.unknown[:-1]] = heads.T
        rest = sizes - self.head - each.sum(axis=0)
        if self.unknown:
            each[self.unknown[-1]] = rest
        if (rest < 0).any() or (not self.unknown and rest.any()):
            raise WireError("the parts of a message do not add up to its size")
        return each


@dataclasses.dataclass(eq=False)
class Parts(Message):
    """``parts``: the messages of each part, each of all workers."""

    form: PartsForm
    parts: tuple[Message, ...]

    @property
    def payload_bits(self) -> np.ndarray:
        return np.array([part.payload_bits for part in self.parts]).sum(axis=0)

    def layer_bits(self) -> np.ndarray:
        return np.array([part.payload_bits for part in self.parts]).T

    def encode(self) -> Packed:
        form, pieces = self.form, [part.encode() for part in self.parts]
        sizes = form.head + np.array([piece.sizes for piece in pieces]).sum(axis=0)
        data, begin = np.empty(sizes.sum(), np.uint8), _starts_of(sizes)
        if form.head:
            heads = np.stack([pieces[part].sizes for part in form.unknown[:-1]], axis=1)
            data[begin[:, None] + np.arange(form.head)] = heads.astype("<u4").view(np.uint8)
        at = begin + form.head
        for piece in pieces:
            _paste(piece, data, at)
            at = at + piece.sizes
        return Packed(data, sizes, np.array([piece.payload_bits for piece in pieces]).sum(axis=0))

    def decoded(self) -> np.ndarray:
        return np.concatenate([part.decoded() for part in self.parts], axis=1)

    def total(self) -> np.ndarray:
        return np.concatenate([part.total() for part in self.parts])


class SumForm(PartsForm):
    """Messages of the same vector, which add up to it."""

    def __init__(self, workers: int, precision: Precision, forms: tuple[Form, ...]):
        super().__init__(workers, precision, forms)
        self.d = forms[0].d

    def decode(self, data: np.ndarray, sizes: np.ndarray) -> Sum:
        return Sum(self, super().decode(data, sizes).parts)


class Sum(Parts):
    """``parts``: the summands."""

    layer_bits = Message.layer_bits  # type: ignore[assignment]
    total = Message.total

    def decoded(self) -> np.ndarray:
        first, *others = (part.decoded() for part in self.parts)
        return sum(others, start=first)


@dataclasses.dataclass(eq=False)
class Stratum:
    """Workers ``rows`` of the block, ascending, all with ``form.d`` coordinates."""

    rows: np.ndarray
    form: Form


class ComposedForm(Form):
    """Sparse vectors with seeded coordinates, whose values travel as messages of another kind.

    The workers that keep the same number k of coordinates form a stratum. Its messages are those of
    vectors in dimension k. A worker that keeps nothing sends nothing, or its length.

    kept : who keeps which coordinates, and the scale
    strata : every worker that keeps something
    sized : whether the strata's forms know their sizes; needed where there is no stratum
    """

    def __init__(self, kept: SeededForm, strata: tuple[Stratum, ...], sized: bool):
        super().__init__(kept.d, kept.workers, kept.precision)
        self.kept, self.strata, self.sized = kept, strata, sized

    @cached_property
    def sizes(self) -> np.ndarray | None:  # type: ignore[override]
        if not self.sized:
            return None
        return self.by_worker([stratum.form.sizes for stratum in self.strata])

    def by_worker(self, numbers: list) -> np.ndarray:
        """What ``numbers`` has for the workers of each stratum, 0 for others: (workers,), int64."""
        out = np.zeros(self.workers, np.int64)
        for stratum, values in zip(self.strata, numbers, strict=True):
            out[stratum.rows] = values
        return out

    def places(self, stratum: Stratum) -> np.ndarray:
        """Where in ``kept.indices`` the stratum's coordinates are, shape (workers of it, k)."""
        return self.kept.ptr[stratum.rows][:, None] + np.arange(stratum.form.d)

    def decode(self, data: np.ndarray, sizes: np.ndarray) -> Composed:
        data, sizes = checked(self, data, sizes)
        starts = _starts_of(sizes)
        if sizes[self.kept.counts == 0].any():
            raise WireError("a worker that keeps no coordinate sent a message")
        messages = []
        for stratum in self.strata:
            part = sizes[stratum.rows]
            messages.append(stratum.form.decode(_cut(data, starts[stratum.rows], part), part))
        return Composed(self, tuple(messages))


@dataclasses.dataclass(eq=False)
class Composed(Message):
    """``messages``: one for each stratum of the form."""

    form: ComposedForm
    messages: tuple[Message, ...]

    @property
    def payload_bits(self) -> np.ndarray:
        return self.form.by_worker([message.payload_bits for message in self.messages])

    def encode(self) -> Packed:
        pieces = [message.encode() for message in self.messages]
        sizes = self.form.by_worker([piece.sizes for piece in pieces])
        starts, data = _starts_of(sizes), np.empty(sizes.sum(), np.uint8)
        for stratum, piece in zip(self.form.strata, pieces, strict=True):
            _paste(piece, data, starts[stratum.rows])
        return Packed(data, sizes, self.form.by_worker([piece.payload_bits for piece in pieces]))

    def seeded(self) -> Seeded:
        """The seeded message with the same coordinates and values."""
        kept = self.form.kept
        values = np.empty(kept.indices.size, kept.precision.arithmetic)
        for stratum, message in zip(self.form.strata, self.messages, strict=True):
            values[self.form.places(stratum)] = message.decoded()
        return Seeded(kept, values)

    def decoded(self) -> np.ndarray:
        return self.seeded().decoded()

    def add_to(self, rows: np.ndarray) -> None:
        self.seeded().add_to(rows)

    def total(self) -> np.ndarray:
        return self.seeded().total()


class Rotated(Carried):
    """``inner``: the messages of the rotated vectors."""

    def decoded(self) -> np.ndarray:
        """R_i^T of the rotated vectors, without the coordinates after the first d."""
        form = self.form
        x = self.inner.decoded().astype(np.float64)
        hadamard(x)
        x *= form.flips
        return x[:, : form.d].astype(form.precision.arithmetic)


@dataclasses.dataclass(eq=False)
class RotatedForm(CarriedForm):
    """Messages of R_i v_i, R_i = H diag(flips_i) / sqrt(D) with Sylvester's Hadamard matrix H.

    inner : the form of the rotated vectors, in dimension D, the least power of two >= d
    flips : 1 or -1, shape (workers, D), float64; v_i has zeros after its d coordinates
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
