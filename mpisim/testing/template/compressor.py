"""NAME: one line on what it sends."""

from __future__ import annotations

import mpisim
from mpisim.wire import SeededForm


@mpisim.compressor("NAME", label="LABEL", letters={"k": "K"})
class CLASS(mpisim.Compressor):
    """C(v) = (d / k) v on k coordinates drawn without replacement, 0 elsewhere.

    k : the number of coordinates
    """

    k: int
    seeded = True  # both sides know the coordinates, so they cost no bits
    examples = ({"k": 3},)  # what `mpisim check` tries

    def check(self):  # self.d, self.n and self.precision are known here
        allowed = f"an integer from 1 to d = {self.d}"
        mpisim.require(1 <= self.k <= self.d, "compressor.k", self.k, allowed)

    def form(self, draw):  # what server and workers know before a message is sent
        indices = draw.subsets(self.d, self.k)
        return SeededForm.of_rows(self.d, self.precision, indices, scale=self.d / self.k)

    def compress(self, v, draw):  # v: (workers, d)
        return self.form(draw).take(v)

    @property
    def omega(self):  # E C(v) = v and E|C(v) - v|^2 <= omega |v|^2
        return self.d / self.k - 1

    @property
    def density(self):  # the non-zeros of C(v), on average
        return float(self.k)
