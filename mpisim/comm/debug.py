"""A star that makes unusable what a method must not use: ``run.debug``.

It is poison: not a number, with a mark that arithmetic and rounding pass on, so that where it shows
up tells where it comes from. It does not change what is sent, drawn and charged.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from mpisim.comm.network import LazyUpload, Upload
from mpisim.comm.star import Star
from mpisim.compressors.base import Compressor
from mpisim.core.arrays import is_tensor, to_host
from mpisim.core.lazy_rows import LazyRows
from mpisim.wire.base import Message

# What poison marks, by the 22 bits of a float32 that follow those of every quiet NaN.
SENT, SERVER_ONLY, NOT_RECEIVED = MARKS = (0x2A5A01, 0x2A5A02, 0x2A5A03)
ON_SERVER_ALONE = ("buckets",)  # draws for these purposes


def poison(mark: int) -> float:
    """Not a number, with this mark."""
    return float(np.array([0x7FF8 << 48 | mark << 29], np.uint64).view(np.float64)[0])


def mark_in(value: Any) -> int:
    """The mark of the first poison in an array, tensor or number; 0 without any."""
    array = np.asarray(to_host(value))
    if array.dtype.kind != "f" or not np.isnan(array).any():
        return 0
    bits = array[np.isnan(array)].astype(np.float64).view(np.uint64)
    marks = bits >> np.uint64(29) & np.uint64((1 << 22) - 1)
    return next((int(mark) for mark in marks if mark in MARKS), 0)


def poisoned(v: Any, mark: int) -> Any:
    """An array or tensor like ``v``, all of it poison."""
    return v * 0 + poison(mark)


@contextlib.contextmanager
def poisoning_sent(poisons: bool) -> Iterator[None]:
    """Meanwhile vectors that were sent are poisoned, or not; all else is."""
    before, DebugStar.poisons_sent = DebugStar.poisons_sent, poisons
    try:
        yield
    finally:
        DebugStar.poisons_sent = before


class DebugStar(Star):
    """Poisons vectors that were sent, once they are encoded; means off the server; and what the
    server sends to clients of other ranks alone. Remembers exchanges that cost no bits.

    kept : whether the sender of a vector may go on with it; it may while the run is set up
    estimating : whether the method's lines of a round run
    uncharged : the first exchange of the round that the method calls, and that is for the log; or
        empty
    """

    poisons_sent = True

    def __init__(self, *args: Any):
        super().__init__(*args)
        self.kept: Callable[[Any], bool] = lambda v: True
        self.estimating, self.uncharged = False, ""
        self._sent: dict[Upload, Any] = {}

    def compress(
        self,
        compressor: Compressor,
        v: np.ndarray | LazyRows,
        purpose: str = "up",
        clients: np.ndarray | None = None,
    ) -> Upload:
        upload = super().compress(compressor, v, purpose, clients)
        writeable = is_tensor(v) or (isinstance(v, np.ndarray) and v.flags.writeable)
        if self.poisons_sent and writeable and not self.kept(v):
            self._sent[upload] = v
        return upload

    def gather(self, upload: Upload) -> Message | None:
        message = super().gather(upload)
        if upload in self._sent:
            self._sent.pop(upload)[...] = poison(SENT)
        return message

    def mean(self, upload: Upload | LazyUpload) -> np.ndarray:
        v = super().mean(upload)
        return v if self.is_server else poisoned(v, SERVER_ONLY)

    def broadcast(
        self, v: np.ndarray, compressor: Compressor | None = None, clients: np.ndarray | None = None
    ) -> np.ndarray:
        decoded = super().broadcast(v, compressor, clients)
        if clients is None or self.is_server:
            return decoded
        here = (clients >= self.first) & (clients < self.first + self.m)
        return decoded if here.any() else poisoned(decoded, NOT_RECEIVED)

    def sum_over_workers(self, rows: np.ndarray) -> np.ndarray:
        return self._for_the_log("sum_over_workers", super().sum_over_workers, rows)

    def all_workers(self, rows: np.ndarray) -> np.ndarray:
        return self._for_the_log("all_workers", super().all_workers, rows)

    def gather_workers(self, rows: np.ndarray) -> np.ndarray | None:
        return self._for_the_log("gather_workers", super().gather_workers, rows)

    def publish(self, v: np.ndarray) -> np.ndarray:
        return self._for_the_log("publish", super().publish, v)

    def flags(self, flags: np.ndarray) -> np.ndarray:
        return self._itself(super().flags, flags)

    def _attacked(self, *args: Any) -> np.ndarray:
        return self._itself(super()._attacked, *args)

    def _report(self, *args: Any) -> None:
        self._itself(super()._report, *args)

    def _for_the_log(self, name: str, exchange: Callable[..., Any], v: Any) -> Any:
        if self.estimating:
            self.uncharged = self.uncharged or name
        return self._itself(exchange, v)

    def _itself(self, call: Callable[..., Any], *args: Any) -> Any:
        """``call``, whose exchanges are the star's, not the method's."""
        before, self.estimating = self.estimating, False
        result = call(*args)
        self.estimating = before
        return result

    def draws(self) -> dict[str, int]:
        """How often this round has drawn for each purpose, which all ranks must count alike."""
        numbers = {purpose: next(copy.copy(n)) for purpose, n in self._numbers.items()}
        return {p: n for p, n in numbers.items() if p not in ON_SERVER_ALONE}

    def end_round(self) -> None:
        self._sent.clear()
        self.uncharged = ""
        super().end_round()
