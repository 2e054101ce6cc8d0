"""Quantized vectors: a norm and signed integer levels, sparse, in Elias omega codes.

The message of a worker is its norms (one for each block of coordinates; one in all by default),
then, for each non-zero level in order of coordinates,

    omega(gap), one sign bit (1: negative), omega(|level|),

with gap = index - previous non-zero index (index + 1 for the first), and ones up to the next byte
(QSGD's Code_s, Alistarh et al. 2017; as charged in the smoothness-aware quantization paper). There
is no count: at most 7 ones are no such triple, because omega words end with a zero.

Coordinate j of block b has the value

    norm_b * (level_j / s_j),

computed in float64 and rounded once to arithmetic precision; s_j is the number of levels for a
coordinate as large as the norm. A level is at most ceil(s_j): senders see to it, readers check it.
A zero norm means that all levels of its block are zero. The one norm that is not finite is the
quiet NaN, for a vector that has no finite norm on the wire: no level follows in its block, and the
block's value is NaN, so that a run that diverges ends as such on all ranks.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property

import numpy as np

from mpisim.wire.base import Form, Message, Packed, Precision, bit_bounds, check_sizes
from mpisim.wire.bits import SHORT, fail, new_words, to_bytes, to_words
from mpisim.wire.scales import check_scales
from mpisim.wire.triples import add_values, most_bits, read, set_values, triple_bits, write


@dataclasses.dataclass(frozen=True, eq=False)
class LevelsForm(Form):
    """What is known of quantized vectors; their sizes are the sender's to tell.

    s : array, shape (1,) or (d,), float64
        Levels per unit of the norm, for all coordinates or for each.
    starts : array, shape (B + 1,), int64
        Block b is the coordinates starts[b] to starts[b+1] - 1; [0, d] for one norm in all.
    """

    d: int
    workers: int
    precision: Precision
    s: np.ndarray
    starts: np.ndarray

    @classmethod
    def uniform(cls, d: int, workers: int, precision: Precision, s: float) -> LevelsForm:
        """One norm, and the same s for all coordinates."""
        return cls(d, workers, precision, np.array([s], np.float64), np.array([0, d]))

    @property
    def sizes(self) -> None:
        return None

    @property
    def norms(self) -> int:
        """B, the number of norms of a worker."""
        return self.starts.size - 1

    @cached_property
    def limits(self) -> np.ndarray:
        """The largest level allowed, shape of ``s``, int64."""
        return np.ceil(self.s).astype(np.int64)

    @property
    def dtype(self) -> np.dtype:
        """Type of levels: int32, or int64 where a level may be larger."""
        return np.dtype(np.int32 if self.limits.max() < 2**31 else np.int64)

    def decode(self, data: np.ndarray, sizes: np.ndarray) -> Levels:
        check_sizes(self, data, sizes)
        bits = self.precision.bits
        short = np.asarray(sizes) * 8 < self.norms * bits
        if short.any():
            raise fail(int(short.argmax()), SHORT)
        levels = np.zeros((self.workers, self.d), self.dtype)
        raw = np.empty((self.workers, self.norms), np.uint64)
        payload = np.empty(self.workers, np.int64)
        bounds = bit_bounds(sizes)
        kernel = (bits, self.limits, self.starts, raw, levels, payload)
        worker, status = read(to_words(data), bounds, *kernel)
        if status < 0:
            raise fail(worker, status)
        norms = raw.astype(f"u{bits // 8}").view(self.precision.wire)
        check_scales(norms)
        message = Levels(self, norms, levels)
        message.__dict__["payload_bits"] = payload  # what was read is what is charged
        return message


@dataclasses.dataclass(frozen=True, eq=False)
class Levels(Message):
    """Quantized vectors of a block of workers.

    norms : array, shape (m, B), wire precision, >= 0, or the quiet NaN
    levels : array, shape (m, d), int32 (int64 where the form says so)
    """

    form: LevelsForm
    norms: np.ndarray
    levels: np.ndarray

    @cached_property
    def payload_bits(self) -> np.ndarray:  # type: ignore[override]
        return triple_bits(self.levels) + self.form.norms * self.form.precision.bits

    def encode(self) -> Packed:
        form, bits = self.form, self.form.precision.bits
        payload = np.empty(form.workers, np.int64)
        most = most_bits(self.levels) + form.workers * (form.norms * bits + 7)
        words = new_words(int(most))
        write(words, self.norms.view(f"u{bits // 8}").astype(np.uint64), bits, self.levels, payload)
        self.__dict__["payload_bits"] = payload
        sizes = (payload + 7) // 8
        return Packed(to_bytes(words, int(sizes.sum())), sizes, payload)

    def decoded(self) -> np.ndarray:
        out = np.empty(self.levels.shape, self.form.precision.arithmetic)
        norms = self.norms.astype(np.float64)
        set_values(out, norms, self.levels, self.form.s, self.form.starts)
        return out

    def total(self) -> np.ndarray:
        total = np.zeros(self.form.d, self.form.precision.arithmetic)
        norms = self.norms.astype(np.float64)
        add_values(total, norms, self.levels, self.form.s, self.form.starts)
        return total
