"""Quantized vectors: norms and signed integer levels, in one of three codes.

Coordinate j of worker i, in block b, has the value

    norm_ib * (level_ij / s_ij),

computed in float64 and rounded once to arithmetic precision; s_ij = 1 / h_ij is the number of
levels, not necessarily whole, for a coordinate as large as the norm. A level is at most
ceil(s_ij): senders see to it, readers check it. A zero norm means that all levels of its block are
zero. The one norm that is not finite is the quiet NaN, for a vector that has no finite norm on the
wire: no level follows in its block, and the block's value is NaN, so that a run that diverges ends
as such on all ranks.

Codes (`mpisim.wire.codecs`): "elias", Elias omega words of gaps and levels, the default and what
the smoothness-aware quantization paper charges; "e1", that paper's Appendix E.1; "entropy", an
entropy coder with the message's own frequencies.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property

import numpy as np

from mpisim.wire.base import Form, Message, Packed, Precision, check_sizes
from mpisim.wire.codecs.bits import UNSIGNED
from mpisim.wire.codecs.elias import add_values, set_values
from mpisim.wire.codecs.registry import CODECS, Codec
from mpisim.wire.scales import check_raw_scales


@dataclasses.dataclass(eq=False)
class LevelsForm(Form):
    """What is known of quantized vectors; their sizes are the sender's to tell.

    s : array, shape (1,), (d,) or (workers, d), float64
        Levels per unit of the norm: for all coordinates, for each, or for each of each worker.
    starts : array, shape (B + 1,), int64
        Block b is the coordinates starts[b] to starts[b+1] - 1; [0, d] for one norm in all.
    codec : {"elias", "e1", "entropy"}
    """

    d: int
    workers: int
    precision: Precision
    s: np.ndarray
    starts: np.ndarray
    codec: str = "elias"

    @classmethod
    def uniform(
        cls, d: int, workers: int, precision: Precision, s: float, codec: str = "elias"
    ) -> LevelsForm:
        """One norm, and the same s for all coordinates."""
        return cls(d, workers, precision, np.array([s], np.float64), np.array([0, d]), codec)

    @property
    def sizes(self) -> None:
        return None

    @property
    def norms(self) -> int:
        """B, the number of norms of a worker."""
        return self.starts.size - 1

    @cached_property
    def rows(self) -> np.ndarray:
        """``s`` with an axis of workers: shape (1 or workers, 1 or d)."""
        return np.atleast_2d(self.s)

    @cached_property
    def limits(self) -> np.ndarray:
        """The largest level allowed, shape of ``rows``, int64."""
        return np.ceil(self.rows).astype(np.int64)

    @cached_property
    def dtype(self) -> np.dtype:
        """Type of levels: int32, or int64 where a level may be larger."""
        return np.dtype(np.int32 if self.limits.max(initial=0) < 2**31 else np.int64)

    @property
    def code(self) -> Codec:
        """What writes and reads the messages."""
        return CODECS[self.codec]

    def decode(self, data: np.ndarray, sizes: np.ndarray) -> Levels:
        check_sizes(self, data, sizes)
        bits = self.precision.bits
        raw, levels, payload = self.code.decode(self, data, np.asarray(sizes, np.int64))
        check_raw_scales(raw, bits // 8)
        norms = raw.astype(UNSIGNED[bits // 8]).view(self.precision.wire)
        message = Levels(self, norms, levels)
        message.__dict__["payload_bits"] = payload  # what was read is what is charged
        return message


@dataclasses.dataclass(eq=False)
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
        return self.form.code.payload_bits(self.form, self._raw, self.levels)

    def encode(self) -> Packed:
        packed = self.form.code.encode(self.form, self._raw, self.levels)
        self.__dict__["payload_bits"] = packed.payload_bits
        return packed

    @property
    def _raw(self) -> np.ndarray:
        """The bits of the norms, shape (m, B), uint64."""
        return self.norms.view(UNSIGNED[self.norms.itemsize]).astype(np.uint64)

    def decoded(self) -> np.ndarray:
        out = np.empty(self.levels.shape, self.form.precision.arithmetic)
        norms = self.norms.astype(np.float64)
        set_values(out, norms, self.levels, self.form.rows, self.form.starts)
        return out

    def total(self) -> np.ndarray:
        total = np.zeros(self.form.d, self.form.precision.arithmetic)
        norms = self.norms.astype(np.float64)
        add_values(total, norms, self.levels, self.form.rows, self.form.starts)
        return total
