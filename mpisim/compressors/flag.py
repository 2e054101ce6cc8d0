"""A bit of each worker as a message. No ``[compressor]`` table names it: `Star.flags` sends it."""

from __future__ import annotations

import numpy as np

from mpisim.compressors.base import Compressor
from mpisim.core.arrays import FALLBACK, to_host
from mpisim.core.rng import Draw
from mpisim.wire.flags import Flags, FlagsForm


class Flag(Compressor):
    """1 where v (workers, 1) is above 0, else 0."""

    name = "flag"

    def form(self, draw: Draw) -> FlagsForm:
        return FlagsForm(self.d, draw.workers, self.precision)

    def compress(self, v: np.ndarray, draw: Draw) -> Flags:
        return Flags(self.form(draw), to_host(v, FALLBACK)[:, 0] > 0)
