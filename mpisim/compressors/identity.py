"""No compression."""

from __future__ import annotations

import numpy as np

from mpisim.compressors.base import Compressor, compressor
from mpisim.core.rng import Draw
from mpisim.theory.compression import FLOAT_BITS
from mpisim.wire.base import Message, same
from mpisim.wire.values import Dense, DenseForm


@compressor("identity", "no compression", {})
class Identity(Compressor):
    """C(v) = v, rounded to wire precision. omega = 0, alpha = 1; the papers charge 32 d bits."""

    on_device = True

    def form(self, draw: Draw) -> DenseForm:
        return DenseForm.of(self.d, draw.workers, self.precision)

    def compress(self, v: np.ndarray, draw: Draw) -> Dense:
        return self.form(draw).take(v)

    @property
    def omega(self) -> float:
        return 0.0

    def paper_bits(self, message: Message) -> np.ndarray:
        return same(message.form.workers, FLOAT_BITS * self.d)
