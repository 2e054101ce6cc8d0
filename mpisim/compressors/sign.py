"""Compressors to one bit a coordinate."""

from __future__ import annotations

import numpy as np

from mpisim.compressors.base import Compressor, compressor
from mpisim.compressors.norms import one_norms
from mpisim.core.rng import Draw
from mpisim.theory.compression import FLOAT_BITS
from mpisim.wire.base import Message, same
from mpisim.wire.scales import round_scales
from mpisim.wire.signs import Signs, SignsForm


@compressor("scaled-sign")
class ScaledSign(Compressor):
    """C(v) = (|v|_1 / d) sign(v), with sign(0) = +1 (Karimireddy et al., 2019; CD-Adam's paper).

    |C(v) - v|^2 = |v|^2 - |v|_1^2 / d, so alpha(v) = |v|_1^2 / (d |v|^2) >= 1/d = alpha, with
    equality for vectors with one non-zero. The papers charge 32 + d bits.

    This differs from the published CD-Adam code: there, sign(0) = 0, which needs more than one bit.
    """

    def form(self, draw: Draw) -> SignsForm:
        return SignsForm(self.d, draw.workers, self.precision)

    def compress(self, v: np.ndarray, draw: Draw) -> Signs:
        v = np.ascontiguousarray(v)
        scales = round_scales(one_norms(v) / self.d, self.precision.wire)
        return self.form(draw).pack(scales, v)

    @property
    def alpha(self) -> float:
        return 1 / self.d

    def paper_bits(self, message: Message) -> np.ndarray:
        return same(message.form.workers, FLOAT_BITS + self.d)
