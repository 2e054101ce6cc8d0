"""Workers that lie: what they send instead of their vectors. The table ``[attack]``.

They know what the good workers send, at no cost, and keep to the protocol: their vectors are
compressed, encoded and charged like any other.
"""

from __future__ import annotations

import dataclasses
from math import inf
from typing import Literal

import numpy as np

from mpisim.core.protocols import Collective
from mpisim.core.rng import Draw, normals
from mpisim.core.schema import require, share_of

SCALES = {"sign-flip": 1.0, "label-flip": 1.0, "alie": 1.06, "ipm": 0.1, "noise": 10.0}


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
