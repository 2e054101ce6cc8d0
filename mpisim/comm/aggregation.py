"""How the server combines the workers' messages: their mean, or a rule that outliers cannot move.

The table ``[server]``. Rules take decoded messages in worker order, so nothing depends on ranks.
"""

from __future__ import annotations

import dataclasses
from math import inf, sqrt
from typing import Literal

import numpy as np

from mpisim.core.numerics.lanes import dot
from mpisim.core.numerics.sums import ordered_sum
from mpisim.core.rng import Draw
from mpisim.core.schema import require, share_of

Rule = Literal["mean", "median", "trimmed-mean", "geometric-median", "centered-clipping"]
LEAST = 1e-12  # the least distance in Weiszfeld's weights


@dataclasses.dataclass(frozen=True)
class Server:
    """The ``[server]`` table: what stands for the mean of the workers' messages.

    aggregate : "mean"; "median" or "trimmed-mean" of each coordinate (Yin et al., 2018);
        "geometric-median", by smoothed Weiszfeld steps (RFA: Pillutla et al., 2022);
        "centered-clipping" around the coordinates' median (Karimireddy et al., 2021)
    trim : of a trimmed mean: the share of values that is left out at each end, rounded down
    clip : of centered clipping: the radius
    steps : of "geometric-median" and "centered-clipping"
    buckets : before the rule, means of so many messages each, dealt at random (Karimireddy et al.,
        2022); 1: none
    """

    aggregate: Rule = "mean"
    trim: float = 0.1
    clip: float = 1.0
    steps: int = 8
    buckets: int = 1

    def __post_init__(self) -> None:
        require(0 <= self.trim < 0.5, "server.trim", self.trim, "a number in [0, 0.5)")
        require(0 < self.clip < inf, "server.clip", self.clip, "a finite number > 0")
        require(self.steps >= 1, "server.steps", self.steps, "an integer >= 1")
        require(self.buckets >= 1, "server.buckets", self.buckets, "an integer >= 1")

    @property
    def robust(self) -> bool:
        """Whether it is not the plain mean."""
        return self.aggregate != "mean" or self.buckets > 1

    def combine(self, rows: np.ndarray, draw: Draw) -> np.ndarray:
        """What stands for the mean of messages (senders, d), shape (d,); zeros without any.

        draw : one row, of the buckets
        """
        if not len(rows):
            return np.zeros(rows.shape[1])
        rows = self._bucketed(rows, draw)
        n = len(rows)
        if self.aggregate == "median":
            return np.median(rows, axis=0)
        if self.aggregate == "trimmed-mean":
            b = share_of(self.trim, n)
            return ordered_sum(np.sort(rows, axis=0)[b : n - b]) / (n - 2 * b)
        if self.aggregate == "geometric-median":
            return self._geometric_median(rows)
        if self.aggregate == "centered-clipping":
            return self._clipped(rows)
        return ordered_sum(rows) / n

    def _bucketed(self, rows: np.ndarray, draw: Draw) -> np.ndarray:
        if self.buckets == 1:
            return rows
        order = draw.batches(np.array([len(rows)]), len(rows))[0]
        parts = (order[k : k + self.buckets] for k in range(0, len(rows), self.buckets))
        return np.array([ordered_sum(rows[part]) / len(part) for part in parts])

    def _geometric_median(self, rows: np.ndarray) -> np.ndarray:
        z = ordered_sum(rows) / len(rows)
        for _ in range(self.steps):
            weights = 1 / np.maximum(_distances(rows, z), LEAST)
            z = ordered_sum(weights[:, None] * rows) / float(ordered_sum(weights[:, None])[0])
        return z

    def _clipped(self, rows: np.ndarray) -> np.ndarray:
        v = np.median(rows, axis=0)
        for _ in range(self.steps):
            factors = np.minimum(1, self.clip / np.maximum(_distances(rows, v), LEAST))
            v = v + ordered_sum(factors[:, None] * (rows - v)) / len(rows)
        return v


def _distances(rows: np.ndarray, z: np.ndarray) -> np.ndarray:
    """|row - z| of each row, shape (senders,)."""
    return np.array([sqrt(dot(away, away)) for away in rows - z])
