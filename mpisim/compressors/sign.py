"""Compressors to one bit a coordinate."""

from __future__ import annotations

from typing import Literal

import numpy as np

from mpisim.compressors.base import Compressor, WorkerRows, compressor
from mpisim.compressors.norms import one_norms
from mpisim.core.protocols import Objective, Uplink
from mpisim.core.rng import Draw
from mpisim.core.schema import require
from mpisim.theory.compression import FLOAT_BITS
from mpisim.wire.base import Message, same
from mpisim.wire.codecs.bits import round_scales
from mpisim.wire.signs import Signs, SignsForm


@compressor("scaled-sign", "scaled sign", {})
class ScaledSign(Compressor):
    """C(v) = (|v|_1 / d) sign(v), with sign(0) = +1 (Karimireddy et al., 2019; CD-Adam's paper).

    |C(v) - v|^2 = |v|^2 - |v|_1^2 / d, so alpha(v) = |v|_1^2 / (d |v|^2) >= 1/d = alpha, with
    equality for vectors with one non-zero. The papers charge 32 + d bits.

    scale : "mean", or "one": C(v) = sign(v), whose scale is 1, or NaN where |v|_1 is not finite.
        Then alpha is None, and with `aggregate = "median"` in the table [server] an odd number of
        workers votes: the median of signs is their majority (signSGD with majority vote, Bernstein
        et al., 2018, arXiv 1810.05291). There the server sends the majority's signs, as a method
        with ``direction = "both"`` does.
    layerwise : each layer of x (a tensor of a network, a matrix) is compressed on its own, as the
        published code's option "layerwise" does, and has its own scale: 32 more bits a layer. Then
        alpha = 1 / d_l of the longest layer.

    This differs from the published CD-Adam code: there, sign(0) = 0, which needs more than one bit.
    """

    scale: Literal["mean", "one"] = "mean"
    layerwise: bool = False
    on_device = True

    def check(self) -> None:
        self.starts, self.fitted = np.array([0, self.d]), self.layerwise

    def prepare(self, star: Uplink, problem: Objective) -> None:
        if self.layerwise:
            self.starts = np.concatenate([[0], np.cumsum(problem.layers)])

    def fit(self, star: Uplink, diagonals: WorkerRows, n_mu: float) -> None:
        allowed = "false inside 'smooth', where vectors have no layers"
        require(not self.layerwise, "compressor.inner.layerwise", True, allowed)

    def form(self, draw: Draw) -> SignsForm:
        return SignsForm(self.d, draw.workers, self.precision, self.starts)

    def compress(self, v: np.ndarray, draw: Draw) -> Signs:
        scales = one_norms(v, self.starts) / np.diff(self.starts)
        if self.scale == "one":
            scales = np.where(np.isnan(round_scales(scales, self.precision.wire)), np.nan, 1)
        return self.form(draw).pack(scales, v)

    @property
    def alpha(self) -> float | None:
        return 1 / int(np.diff(self.starts).max()) if self.scale == "mean" else None

    def paper_bits(self, message: Message) -> np.ndarray:
        norms = (len(self.starts) - 1) * int(self.scale == "mean")
        return same(message.form.workers, FLOAT_BITS * norms + self.d)
