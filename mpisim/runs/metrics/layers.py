"""The bits of each layer of x: a network's tensors, or a problem's matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from mpisim.comm.star import Star
from mpisim.comm.upload import Upload
from mpisim.core.lazy_rows import LazyRows
from mpisim.problems.base import Problem
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

    columns: ClassVar[list[Column]] = [_column(0)]  # of a run: one for each layer

    def __init__(self, star: Star, problem: Problem, logged: Callable[[int], bool]):
        super().__init__(star, problem, logged)
        self.count = len(problem.layers)
        self.columns = [_column(layer) for layer in range(self.count)]  # type: ignore[misc]
        self.bits = np.full((star.m, self.count), np.nan)
        self.round = -1  # whose bits they are

    def up(self, v: np.ndarray | LazyRows, upload: Upload) -> None:
        if not self.logged(self.star.round + 1):
            return
        if self.round != self.star.round:
            self.round, self.bits = self.star.round, np.zeros((self.star.m, self.count))
        sent = upload.message.layer_bits()
        if sent is None or sent.shape[1] != self.count:
            sent = np.full((1, self.count), np.nan)
        np.add.at(self.bits, upload.draw.members, sent)  # a client drawn twice is there twice

    def values(self, x: np.ndarray) -> tuple[float, ...]:
        own = self.bits if self.round == self.star.round - 1 else np.full(self.bits.shape, np.nan)
        return tuple(self.star.sum_over_workers(own).tolist())
