"""The bits of each layer of x: a network's tensors, or a problem's matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from mpisim.comm.upload import Upload
from mpisim.core.lazy_rows import LazyRows
from mpisim.core.state import PerWorker, Shared
from mpisim.runs.log.schema import Column
from mpisim.runs.metrics.base import Metric, metric


def _column(layer: int) -> Column:
    return f"layer_{layer}_bits", np.float64, "bit", f"sent in round k - 1 for layer {layer}"


@metric("layers")
class Layers(Metric):
    """Payload bits that workers sent for each layer in round k - 1, summed over workers.

    NaN if nothing was compressed in it, or not layer by layer: ``layerwise``, ``scaled-sign`` with
    its key ``layerwise``, and ``rank-k`` do that.
    """

    columns: ClassVar[Sequence[Column]] = [_column(0)]  # of a run: one for each layer

    bits = PerWorker("of each layer, (m, layers)")
    round = Shared("whose bits they are")

    def check(self) -> None:
        self.count = len(self.problem.layers)
        self.columns = tuple(map(_column, range(self.count)))  # type: ignore[misc]
        self.bits, self.round = np.full((self.star.m, self.count), np.nan), -1

    def up(self, v: np.ndarray | LazyRows, upload: Upload) -> None:
        if not self.logged(self.star.round + 1):
            return
        if self.round != self.star.round:
            self.round, self.bits = self.star.round, np.zeros((self.star.m, self.count))
        sent = upload.message.layer_bits()
        known = sent is not None and sent.shape[1] == self.count
        self.bits[upload.draw.members] += sent if known else np.nan

    def values(self, x: np.ndarray) -> tuple[float, ...]:
        own = self.bits if self.round == self.star.round - 1 else np.full(self.bits.shape, np.nan)
        return tuple(self.star.sum_over_workers(own).tolist())
