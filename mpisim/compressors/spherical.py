"""Spherical compression: a vector's length, and which of some random directions is the nearest."""

from __future__ import annotations

from functools import cache
from typing import Literal

import numpy as np

from mpisim.compressors.base import Compressor, compressor
from mpisim.compressors.norms import block_norms
from mpisim.core.numerics.functions import exp, log
from mpisim.core.rng import Draw
from mpisim.core.schema import require
from mpisim.theory.compression import FLOAT_BITS
from mpisim.wire.base import Message, same
from mpisim.wire.carried import Directions, DirectionsForm
from mpisim.wire.codecs.bits import round_scales
from mpisim.wire.signs import Points, PointsForm

STEPS = 1 << 18  # of an integral


@compressor("spherical", "spherical", {"bits": "b"})
class Spherical(Compressor):
    """C(v) = S u, u the nearest to v of 2^b directions, uniform on the sphere.

    Both sides draw the directions, for each message anew: a message has S and b bits.

    bits : b, from 1 to 12; compressing takes 2^b d normal numbers, and decoding d
    scale : "unbiased", S = |v| / m, or "least", S = m |v|, which has the least error

    m is the mean cosine of the angle between u and v, the mean of the largest of 2^b cosines. By
    symmetry E u = m v / |v| for every v. So "unbiased" has E C(v) = v and omega = 1 / m^2 - 1,
    "least" has alpha = m^2, and every v attains them. For few bits and many coordinates m^2 is near
    1.39 b / d: this is for short vectors, or to send next to nothing.

    The name is that of Albasyoni, Safaryan, Condat and Richtarik (2020), whose text was not read:
    this rule and its constants are derived here.
    """

    bits: int = 8
    scale: Literal["unbiased", "least"] = "unbiased"

    def check(self) -> None:
        require(1 <= self.bits <= 12, "compressor.bits", self.bits, "an integer from 1 to 12")
        self.m = mean_cosine(self.d, self.bits)

    def form(self, draw: Draw) -> DirectionsForm:
        inner = PointsForm(1, draw.workers, self.precision, np.empty(1 << self.bits))
        return DirectionsForm(self.d, draw.workers, self.precision, inner, draw)

    def compress(self, v: np.ndarray, draw: Draw) -> Directions:
        form, starts = self.form(draw), np.array([0, self.d])
        lengths = block_norms(np.ascontiguousarray(v, np.float64), starts, True)
        factor = self.m if self.scale == "least" else 1 / self.m
        scales = round_scales(lengths * factor, self.precision.wire)
        return Directions(form, Points(form.inner, scales, form.nearest(v)))

    @property
    def omega(self) -> float | None:
        return 1 / self.m**2 - 1 if self.scale == "unbiased" else None

    @property
    def alpha(self) -> float | None:
        return self.m**2 if self.scale == "least" else super().alpha

    def paper_bits(self, message: Message) -> np.ndarray:
        return same(message.form.workers, FLOAT_BITS + self.bits)


@cache
def mean_cosine(d: int, b: int) -> float:
    """E max cos of 2^b independent uniform directions' angles to a fixed one, in d dimensions.

    1 - int sin(t) P(t)^(2^b) dt over [0, pi], P(t) the probability of an angle above t, whose
    density is proportional to sin(t)^(d-2). With w = t' / (1 + t'), t' = tan(t / 2), sin(t) is
    2 w (1 - w) / q and dt is 2 dw / q, with q = w^2 + (1 - w)^2.
    """
    if d == 1:
        return 1 - 2.0 ** (1 - 2**b)
    w = (np.arange(STEPS) + 0.5) / STEPS
    q = w**2 + (1 - w) ** 2
    sine = 2 * w * (1 - w) / q
    weights = exp(np.maximum((d - 2) * log(sine), -700)) / q
    below = np.cumsum(weights)
    above = 1 - (below - weights / 2) / below[-1]
    for _ in range(b):
        above *= above
    return float(1 - 2 / STEPS * np.cumsum(sine / q * above)[-1])
