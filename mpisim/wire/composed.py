"""Sparse vectors with seeded coordinates, whose values travel as messages of another kind.

Workers that keep the same number k of coordinates are a part; a part's messages are those of
vectors in dimension k. A worker that keeps nothing sends nothing.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property

import numpy as np
from numba import njit

from mpisim.core.errors import WireError
from mpisim.wire.base import Form, Message, Packed, Precision, check_sizes
from mpisim.wire.sparse import SeededForm, scatter, scatter_add, scatter_onto


@dataclasses.dataclass(eq=False)
class Part:
    """Workers ``rows`` of the block, ascending, all with ``form.d`` coordinates."""

    rows: np.ndarray
    form: Form


@dataclasses.dataclass(eq=False)
class ComposedForm(Form):
    """What is known of quantized sparse vectors.

    kept : who keeps what, and the scale
    parts : every worker that keeps something
    sized : whether forms of parts know their sizes, also where there are none
    """

    kept: SeededForm
    parts: tuple[Part, ...]
    sized: bool

    @property
    def d(self) -> int:  # type: ignore[override]
        return self.kept.d

    @property
    def workers(self) -> int:  # type: ignore[override]
        return self.kept.workers

    @property
    def precision(self) -> Precision:  # type: ignore[override]
        return self.kept.precision

    @cached_property
    def sizes(self) -> np.ndarray | None:  # type: ignore[override]
        if not self.sized:
            return None
        sizes = np.zeros(self.workers, np.int64)
        for part in self.parts:
            own = part.form.sizes
            assert own is not None
            sizes[part.rows] = own
        return sizes

    def decode(self, data: np.ndarray, sizes: np.ndarray) -> Composed:
        check_sizes(self, data, sizes)
        sizes = np.asarray(sizes, np.int64)
        starts = np.cumsum(sizes) - sizes
        idle = np.ones(self.workers, bool)
        messages = []
        for part in self.parts:
            idle[part.rows] = False
            own = sizes[part.rows]
            piece = np.empty(own.sum(), np.uint8)
            _copy(data, starts[part.rows], piece, np.cumsum(own) - own, own)
            messages.append(part.form.decode(piece, own))
        if sizes[idle].any():
            raise WireError("a worker that keeps no coordinate sent a message")
        return Composed(self, tuple(messages))


@dataclasses.dataclass(eq=False)
class Composed(Message):
    """``messages``: one for each part of the form."""

    form: ComposedForm
    messages: tuple[Message, ...]

    @property
    def payload_bits(self) -> np.ndarray:
        bits = np.zeros(self.form.workers, np.int64)
        for part, message in zip(self.form.parts, self.messages, strict=True):
            bits[part.rows] = message.payload_bits
        return bits

    def encode(self) -> Packed:
        sizes = np.zeros(self.form.workers, np.int64)
        payload = np.zeros(self.form.workers, np.int64)
        pieces = [message.encode() for message in self.messages]
        for part, piece in zip(self.form.parts, pieces, strict=True):
            sizes[part.rows], payload[part.rows] = piece.sizes, piece.payload_bits
        starts = np.cumsum(sizes) - sizes
        data = np.empty(sizes.sum(), np.uint8)
        for part, piece in zip(self.form.parts, pieces, strict=True):
            own = piece.sizes
            _copy(piece.data, np.cumsum(own) - own, data, starts[part.rows], own)
        return Packed(data, sizes, payload)

    @cached_property
    def values(self) -> np.ndarray:
        """What the kept coordinates decode to, before scaling: as ``form.kept.indices``."""
        kept = self.form.kept
        values = np.empty(kept.indices.size, kept.precision.arithmetic)
        for part, message in zip(self.form.parts, self.messages, strict=True):
            at = kept.ptr[part.rows][:, None] + np.arange(part.form.d)
            values[at] = message.decoded()
        return values

    def _scaled(self) -> tuple[np.ndarray, np.floating]:
        scale, kind = self.form.kept.scale, self.values.dtype.type
        if isinstance(scale, np.ndarray):
            return self.values * scale.astype(kind, copy=False), kind(1)
        return self.values, kind(scale)

    def decoded(self) -> np.ndarray:
        kept = self.form.kept
        out = np.zeros((kept.workers, kept.d), kept.precision.arithmetic)
        scatter(out, kept.ptr, kept.indices, *self._scaled())
        return out

    def add_to(self, rows: np.ndarray) -> None:
        kept = self.form.kept
        scatter_onto(rows, kept.ptr, kept.indices, *self._scaled())

    def total(self) -> np.ndarray:
        kept = self.form.kept
        total = np.zeros(kept.d, kept.precision.arithmetic)
        scatter_add(total, kept.indices, *self._scaled())
        return total


@njit(cache=True)
def _copy(source, froms, target, tos, sizes):
    """sizes[i] bytes from froms[i] of ``source`` to tos[i] of ``target``, for all i."""
    for i in range(sizes.size):
        for t in range(sizes[i]):
            target[tos[i] + t] = source[froms[i] + t]
