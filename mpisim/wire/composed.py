"""Sparse vectors with seeded coordinates, whose values travel as messages of another kind.

The workers that keep the same number k of coordinates form a stratum. Its messages are those of
vectors in dimension k. A worker that keeps nothing sends nothing.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property

import numpy as np
from numba import njit

from mpisim.core.errors import WireError
from mpisim.wire.base import Form, Message, Packed, check_sizes
from mpisim.wire.scatter import Entries, SparseMessage, scaled
from mpisim.wire.sparse import SeededForm


@dataclasses.dataclass(eq=False)
class Stratum:
    """Workers ``rows`` of the block, ascending, all with ``form.d`` coordinates."""

    rows: np.ndarray
    form: Form


class ComposedForm(Form):
    """What is known of quantized sparse vectors.

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
        sizes = np.zeros(self.workers, np.int64)
        for stratum in self.strata:
            own = stratum.form.sizes
            assert own is not None
            sizes[stratum.rows] = own
        return sizes

    def places(self, stratum: Stratum) -> np.ndarray:
        """Where in ``kept.indices`` the stratum's coordinates are, shape (workers of it, k)."""
        return self.kept.ptr[stratum.rows][:, None] + np.arange(stratum.form.d)

    def decode(self, data: np.ndarray, sizes: np.ndarray) -> Composed:
        check_sizes(self, data, sizes)
        sizes = np.asarray(sizes, np.int64)
        starts = starts_of(sizes)
        idle = np.ones(self.workers, bool)
        messages = []
        for stratum in self.strata:
            idle[stratum.rows] = False
            own = sizes[stratum.rows]
            piece = np.empty(own.sum(), np.uint8)
            copy_pieces(data, starts[stratum.rows], piece, starts_of(own), own)
            messages.append(stratum.form.decode(piece, own))
        if sizes[idle].any():
            raise WireError("a worker that keeps no coordinate sent a message")
        return Composed(self, tuple(messages))


@dataclasses.dataclass(eq=False)
class Composed(SparseMessage):
    """``messages``: one for each stratum of the form."""

    form: ComposedForm
    messages: tuple[Message, ...]

    @property
    def payload_bits(self) -> np.ndarray:
        bits = np.zeros(self.form.workers, np.int64)
        for stratum, message in zip(self.form.strata, self.messages, strict=True):
            bits[stratum.rows] = message.payload_bits
        return bits

    def encode(self) -> Packed:
        sizes = np.zeros(self.form.workers, np.int64)
        pieces = [message.encode() for message in self.messages]
        for stratum, piece in zip(self.form.strata, pieces, strict=True):
            sizes[stratum.rows] = piece.sizes
        starts = starts_of(sizes)
        data = np.empty(sizes.sum(), np.uint8)
        for stratum, piece in zip(self.form.strata, pieces, strict=True):
            copy_pieces(piece.data, starts_of(piece.sizes), data, starts[stratum.rows], piece.sizes)
        return Packed(data, sizes, self.payload_bits)

    @cached_property
    def values(self) -> np.ndarray:
        """What the kept coordinates decode to, before scaling: as ``form.kept.indices``."""
        kept = self.form.kept
        values = np.empty(kept.indices.size, kept.precision.arithmetic)
        for stratum, message in zip(self.form.strata, self.messages, strict=True):
            values[self.form.places(stratum)] = message.decoded()
        return values

    def entries(self) -> Entries:
        kept = self.form.kept
        values, scale = scaled(self.values, kept.scale, kept.precision.arithmetic)
        return kept.ptr, kept.indices, values, scale


def starts_of(sizes: np.ndarray) -> np.ndarray:
    """Where each message starts, in bytes."""
    return np.cumsum(sizes) - sizes


@njit(cache=True)
def copy_pieces(source, froms, target, tos, sizes):
    """sizes[i] bytes from froms[i] of ``source`` to tos[i] of ``target``, for all i."""
    for i in range(sizes.size):
        for t in range(sizes[i]):
            target[tos[i] + t] = source[froms[i] + t]
