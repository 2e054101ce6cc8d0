"""Workers that lie, ``[attack]``, and how the server combines their messages, ``[server]``.

Bad workers know what the good ones send, at no cost, and keep to the protocol: their vectors are
compressed, encoded and charged like any other. The server takes the mean, or a rule that outliers
cannot move. Rules take decoded messages in worker order, so nothing depends on ranks.
"""

from __future__ import annotations

import dataclasses
from math import inf, sqrt
from typing import Literal

import numpy as np

from mpisim.core.numerics.lanes import dot
from mpisim.core.numerics.sums import ordered_sum
from mpisim.core.protocols import Collective
from mpisim.core.rng import Draw, normals
from mpisim.core.schema import require, share_of

Rule = Literal["mean", "median", "trimmed-mean", "geometric-median", "centered-clipping"]
SCALES = {"sign-flip": 1.0, "label-flip": 1.0, "alie": 1.06, "ipm": 0.1, "noise": 10.0}
LEAST = 1e-12  # the least distance in Weiszfeld's weights


@dataclasses.dataclass(frozen=True)
class Server:
    """The ``[server]`` table: what stands for the mean of the workers' messages.

    aggregate : "mean"; "median" or "trimmed-mean" of each coordinate (Yin et al., 2018);
        "geometric-median", by smoothed Weiszfeld steps (RFA: Pillutla et al., 2022);
        "centered-clipping" (Karimireddy et al., 2021), here around the coordinates' median, there
        around the aggregate of the round before
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


@dataclasses.dataclass(frozen=True)
class Attack:
    """The ``[attack]`` table. The last workers are bad; f is the mean over the good ones.

    With v_i what an honest worker would send, and mean and deviation (of each coordinate) over the
    good ones, a bad one sends

    name : "sign-flip": -scale v_i; "noise": v_i + scale N(0, I); "ipm", inner product
        manipulation: -scale mean (Xie et al., 2020); "alie", a little is enough: mean - scale
        deviation (Baruch et al., 2019); "label-flip": v_i of its samples with the other label,
        of C classes C - 1 - y
    share : of bad workers, below 0.5; their number is rounded down
    scale : 1, 10, 0.1 and 1.06 unless given, in this order
    """

    name: Literal["sign-flip", "label-flip", "alie", "ipm", "noise"]
    share: float
    scale: float | None = None

    def __post_init__(self) -> None:
        require(0 <= self.share < 0.5, "attack.share", self.share, "a number in [0, 0.5)")
        scale, fits = self.scale, self.name != "label-flip"
        allowed = "a finite number > 0" if fits else 'absent with name = "label-flip"'
        require(scale is None or (fits and 0 < scale < inf), "attack.scale", scale, allowed)

    @property
    def of_the_mean(self) -> bool:
        """Whether it is made of the good workers' mean."""
        return self.name in ("ipm", "alie")

    def bad(self, n: int) -> np.ndarray:
        """Whether each of n workers is bad, (n,), bool."""
        return np.arange(n) >= n - share_of(self.share, n)

    def corrupted(
        self, v: np.ndarray, members: np.ndarray, star: Collective, draw: Draw
    ) -> np.ndarray:
        """What this rank's senders send instead of v (senders, d). Collective.

        members : the senders, counted from this rank's first worker; draw : of the noise
        """
        bad = self.bad(star.n)[star.first + members]
        scale = SCALES[self.name] if self.scale is None else self.scale
        if self.of_the_mean:

            def mean_of_good(values: np.ndarray) -> np.ndarray:
                sums = np.zeros((star.m, 1 + v.shape[1]))
                sums[members[~bad], 0], sums[members[~bad], 1:] = 1, values
                count, *total = star.sum_over_workers(sums)
                return np.array(total) / max(count, 1)

            good = v[~bad].astype(np.float64)
            mean = mean_of_good(good)
            if self.name == "ipm":
                wrong = -scale * mean
            else:
                wrong = mean - scale * np.sqrt(mean_of_good((good - mean) ** 2))
        elif self.name == "sign-flip":
            wrong = -scale * v[bad]
        elif self.name == "noise":
            wrong = v[bad] + scale * normals(draw.words(v.shape[1])[bad])
        else:
            return v
        out = v.copy()
        out[bad] = wrong
        return out
