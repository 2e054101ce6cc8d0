"""Quantized vectors: norms and signed integer levels, in one of three codes.

Coordinate j of worker i, in block b, has the value

    norm_ib * (level_ij / s_ij),

computed in float64 and rounded once to arithmetic precision; s_ij = 1 / h_ij is the number of
levels, not necessarily whole, for a coordinate as large as the norm. A level is at most
ceil(s_ij): senders see to it, readers check it. A zero norm means that all levels of its block are
zero. The one norm that is not finite is the quiet NaN, for a vector that has no finite norm on the
wire: no level follows in its block, and the block's value is NaN, so that a run that diverges ends
as diverged on all ranks.

Codes (`mpisim.wire.codecs`): "elias", Elias omega words of gaps and levels, the default and what
the smoothness-aware quantization paper charges; "e1", that paper's Appendix E.1; "entropy", an
entropy coder with the message's own frequencies.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property, lru_cache

import numpy as np
from numba import njit

from mpisim.core.errors import InputError
from mpisim.wire.base import CodedMessage, Form, KernelMessage, Packed, Precision, checked
from mpisim.wire.codecs import CODECS
from mpisim.wire.codecs.bits import bytes_for, check, check_scales, raw, round_scales


@dataclasses.dataclass(eq=False)
class LevelsForm(Form):
    """What is known of quantized vectors; only the sender knows the sizes.

    s : array, shape (1,), (d,) or (workers, d), float64
        Levels per unit of the norm: for all coordinates, for each, or for each of each worker.
    starts : array, shape (B + 1,), int64
        Block b is the coordinates starts[b] to starts[b+1] - 1; [0, d] for one norm in all.
    codec : {"elias", "e1", "entropy"}
    """

    s: np.ndarray
    starts: np.ndarray
    codec: str = "elias"

    sizes = None  # type: ignore[assignment]

    @classmethod
    @lru_cache(maxsize=64)
    def uniform(
        cls, d: int, workers: int, precision: Precision, s: float, codec: str = "elias"
    ) -> LevelsForm:
        """One norm, and the same s for all coordinates: made once, the same in every round."""
        return cls(d, workers, precision, np.array([s], np.float64), np.array([0, d]), codec)

    @property
    def norms(self) -> int:
        """B, the number of norms of a worker."""
        return self.starts.size - 1

    @cached_property
    def s_by_worker(self) -> np.ndarray:
        """``s`` with an axis of workers: shape (1 or workers, 1 or d)."""
        return np.atleast_2d(self.s)

    @cached_property
    def limits(self) -> np.ndarray:
        """The largest level allowed, shape of ``s_by_worker``, int64."""
        return np.ceil(self.s_by_worker).astype(np.int64)

    @property
    def steps(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What a code needs: the limits of levels, s by worker, and where blocks start."""
        return self.limits, self.s_by_worker, self.starts

    @cached_property
    def top(self) -> int:
        """The largest of ``limits``."""
        return int(self.limits.max(initial=0))

    @cached_property
    def dtype(self) -> np.dtype:
        """Type of levels: int32, or int64 where a level may be larger."""
        return np.dtype(np.int32 if self.top < 2**31 else np.int64)

    def pack(self, norms: np.ndarray, levels: np.ndarray) -> Levels:
        """The message with these norms, shape (workers, B), and levels, shape (workers, d).

        `round_scales` rounds norms. Levels of one that is 0 or not finite become 0.
        `InputError` for a level that is not a whole number within `limits`.
        """
        norms = round_scales(np.asarray(norms, np.float64), self.precision.wire)
        norms = norms.reshape(self.workers, self.norms)
        positive = np.isfinite(norms) & (norms > 0)
        levels = np.where(np.repeat(positive, np.diff(self.starts), axis=1), levels, 0)
        within = (-self.limits <= levels) & (levels <= self.limits)
        wrong = ~(within & (levels == np.rint(levels)))
        if wrong.any():
            allowed = f"whole numbers, at most ceil(s) = {self.top} in size"
            raise InputError(f"LevelsForm.pack: a level is {levels[wrong][0]}; allowed: {allowed}")
        return Levels(self, norms, levels.astype(self.dtype))

    def decode(self, data: np.ndarray, sizes: np.ndarray) -> Levels:
        data, sizes = checked(self, data, sizes)
        norms = np.empty((self.workers, self.norms), self.precision.wire)
        levels = np.zeros((self.workers, self.d), self.dtype)
        payload, decode = np.empty(self.workers, np.int64), CODECS[self.codec].decode
        unsigned, bits = raw(norms), self.precision.bits
        check(*decode(data, sizes, bits, *self.steps, unsigned, levels, payload))
        check_scales(unsigned)
        return Levels(self, norms, levels, payload)


@dataclasses.dataclass(eq=False)
class Levels(KernelMessage, CodedMessage):
    """Quantized vectors of a block of workers.

    norms : array, shape (m, B), wire precision, >= 0, or the quiet NaN
    levels : array, shape (m, d), int32 (int64 where the form says so)
    """

    form: LevelsForm
    norms: np.ndarray
    levels: np.ndarray
    payload: np.ndarray | None = None

    def encode(self) -> Packed:
        payload = np.empty(len(self.levels), np.int64)
        encode = CODECS[self.form.codec].encode
        norms, bits = raw(self.norms), self.form.precision.bits
        data = encode(norms, bits, self.levels, *self.form.steps, payload)
        self.payload = payload
        return Packed(data, bytes_for(payload), payload)

    def put(self, rows: np.ndarray, add: bool) -> None:
        form, top = self.form, self.form.top
        if len(rows) == 1 and form.s.size == 1 and 4 * top * form.norms <= form.d:
            _sum_few(rows[0], self.norms, self.levels, form.s[0], top, form.starts)
        else:
            _put(rows, add, self.norms, self.levels, form.s_by_worker, form.starts)


@njit(cache=True, error_model="numpy")
def _put(rows, add, norms, levels, s, starts):
    """`KernelMessage.put`; ``s``: shape (1 or m, 1 or d)."""
    values = np.empty(rows.shape[1], rows.dtype)
    for i in range(levels.shape[0]):
        row = rows[i * rows.shape[0] // levels.shape[0]]
        to = values if add else row
        _decode(to, norms[i], levels[i], s[min(i, s.shape[0] - 1)], starts)
        if add:
            for j in range(row.size):
                row[j] += values[j]


@njit(cache=True, error_model="numpy")
def _decode(out, norms, levels, s, starts):
    """out[j] = norm * (level / s) in float64, for one worker."""
    for b in range(norms.size):
        norm = np.float64(norms[b])
        if s.size == 1:
            for j in range(starts[b], starts[b + 1]):
                out[j] = norm * (levels[j] / s[0])
        else:
            for j in range(starts[b], starts[b + 1]):
                out[j] = norm * (levels[j] / s[j])


@njit(cache=True, error_model="numpy")
def _sum_few(total, norms, levels, s, top, starts):
    """`_put` of all in one row: what each level, at most ``top``, adds is worked out before."""
    kind, value = total.dtype.type, np.empty(2 * top + 1, total.dtype)
    for i in range(levels.shape[0]):
        for b in range(norms.shape[1]):
            norm = np.float64(norms[i, b])
            if norm != norm:  # no level counts
                total[starts[b] : starts[b + 1]] = np.nan
                continue
            for level in range(-top, top + 1):
                value[level + top] = kind(norm * (level / s))
            for j in range(np.uint64(starts[b]), np.uint64(starts[b + 1])):
                total[j] += value[np.uint64(levels[i, j] + top)]
