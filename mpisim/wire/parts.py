"""Vectors in parts, one message for each part of a worker's vector.

A worker's parts follow each other, each padded to bytes. In front of them stand the sizes that only
the sender knows, in bytes, 32 bits each (framing); that of the last such part follows from the
length of the whole.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property
from itertools import pairwise

import numpy as np

from mpisim.core.errors import WireError
from mpisim.wire.base import Form, Message, Packed, Precision, check_sizes
from mpisim.wire.composed import copy_pieces, starts_of

LENGTH_BYTES = 4


class PartsForm(Form):
    """``forms`` of the parts, which are coordinates starts[l] to starts[l+1] - 1."""

    def __init__(self, workers: int, precision: Precision, forms: tuple[Form, ...]):
        self.starts = np.cumsum([0, *(form.d for form in forms)])
        super().__init__(int(self.starts[-1]), workers, precision)
        self.forms = forms

    @cached_property
    def slices(self) -> list[slice]:
        """The coordinates of each part."""
        return [slice(*ends) for ends in pairwise(self.starts.tolist())]

    @cached_property
    def unknown(self) -> np.ndarray:
        """The parts whose sizes only the sender knows, shape (count,), int64."""
        return np.flatnonzero([form.sizes is None for form in self.forms])

    @property
    def head(self) -> int:
        """Bytes of the sizes in front of a message."""
        return LENGTH_BYTES * max(0, self.unknown.size - 1)

    @cached_property
    def sizes(self) -> np.ndarray | None:  # type: ignore[override]
        if self.unknown.size:
            return None
        return np.array([form.sizes for form in self.forms]).sum(axis=0)

    def decode(self, data: np.ndarray, sizes: np.ndarray) -> Parts:
        check_sizes(self, data, sizes)
        data, sizes = np.ascontiguousarray(data), np.asarray(sizes, np.int64)
        begin = starts_of(sizes)
        each = self._sizes_of_parts(data, sizes, begin)
        at, parts = begin + self.head, []
        for form, own in zip(self.forms, each, strict=True):
            piece = np.empty(own.sum(), np.uint8)
            copy_pieces(data, at, piece, starts_of(own), own)
            parts.append(form.decode(piece, own))
            at = at + own
        return Parts(self, tuple(parts))

    def _sizes_of_parts(self, data: np.ndarray, sizes: np.ndarray, begin: np.ndarray) -> np.ndarray:
        """Bytes of each part of each message, shape (parts, workers); `WireError` if wrong."""
        if (sizes < self.head).any():
            raise WireError("a message is too short for the sizes of its parts")
        each = np.zeros((len(self.forms), self.workers), np.int64)
        for part, form in enumerate(self.forms):
            if form.sizes is not None:
                each[part] = form.sizes
        heads = data[begin[:, None] + np.arange(self.head)]  # (workers, head)
        *told, last = self.unknown.tolist() or [None]
        each[told] = heads.reshape(-1).view("<u4").reshape(self.workers, len(told)).T
        rest = sizes - self.head - each.sum(axis=0)
        if last is not None:
            each[last] = rest
        if (rest < 0).any() or (last is None and rest.any()):
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
        data, begin = np.empty(sizes.sum(), np.uint8), starts_of(sizes)
        if form.head:
            told = [pieces[part].sizes for part in form.unknown[:-1]]
            own = np.stack(told, axis=1).astype("<u4")
            data[begin[:, None] + np.arange(form.head)] = own.view(np.uint8)
        at = begin + form.head
        for piece in pieces:
            copy_pieces(piece.data, starts_of(piece.sizes), data, at, piece.sizes)
            at = at + piece.sizes
        return Packed(data, sizes, self.payload_bits)

    def decoded(self) -> np.ndarray:
        return np.concatenate([part.decoded() for part in self.parts], axis=1)

    def total(self) -> np.ndarray:
        return np.concatenate([part.total() for part in self.parts])
