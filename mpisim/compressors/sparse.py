"""Compressors that keep some coordinates: RandK, TopK, Bernoulli."""

from __future__ import annotations

import numpy as np

from mpisim.compressors.base import Compressor, compressor
from mpisim.core.lazy_rows import LazyRows
from mpisim.core.numerics.select import largest
from mpisim.core.numerics.sums import rounded
from mpisim.core.rng import Draw
from mpisim.core.schema import require
from mpisim.theory.compression import FLOAT_BITS
from mpisim.theory.quantization import cal_L_subsets
from mpisim.wire.base import Message, same
from mpisim.wire.sparse import Explicit, ExplicitForm, Seeded, SeededForm


class KCoordinates(Compressor):
    """Keeps K coordinates: ``k``, or if that is below 1, its share of d, at least one."""

    k: int | float

    def check(self) -> None:
        k, d = self.k, self.d
        share = isinstance(k, float) and 0 < k < 1
        allowed = f"an integer from 1 to d = {d}, or a share of d below 1"
        require(share or (isinstance(k, int) and 1 <= k <= d), "compressor.k", k, allowed)
        self.K = max(1, int(k * d)) if share else int(k)

    @property
    def density(self) -> float:
        return float(self.K)

    def paper_bits(self, message: Message) -> np.ndarray:
        return same(message.form.workers, FLOAT_BITS * self.K)


@compressor("randk", "RandK", {"k": "K"})
class RandK(KCoordinates):
    """C(v) = (d / k) v on k coordinates drawn without replacement, 0 elsewhere.

    omega = d/k - 1, zeta = k (MARINA, Definition 1.1). Workers draw independently, and the server
    redraws their coordinates: a message is k values. The papers charge 32 k bits.

    k : the number of coordinates, or a share of d below 1.
    scaled : false leaves out the d / k: then C is biased and contractive, alpha = k/d.

    This differs from the published MARINA code: there, all workers drew the same coordinates.
    """

    k: int | float
    scaled: bool = True
    seeded = lazy = on_device = True

    def form(self, draw: Draw) -> SeededForm:
        rows = draw.subsets(self.d, self.K)
        scale = self.d / self.K if self.scaled else 1.0
        return SeededForm.of_rows(self.d, self.precision, rows, scale)

    def compress(self, v: np.ndarray | LazyRows, draw: Draw) -> Seeded:
        return self.form(draw).take(v)

    @property
    def omega(self) -> float | None:
        return self.d / self.K - 1 if self.scaled else None

    @property
    def alpha(self) -> float | None:
        return super().alpha if self.scaled else self.K / self.d

    def cal_L(self, matrix: np.ndarray, worker: int) -> float | None:
        return cal_L_subsets(matrix, self.K) if self.scaled else None


@compressor("topk", "TopK", {"k": "K"})
class TopK(KCoordinates):
    """C(v) = v on the k coordinates largest in absolute value, 0 elsewhere; ties: the lower index.

    k : the number of coordinates, or a share of d below 1.

    index_bits : what the paper bits charge for each index. 0 gives 32 k, as in the experiments of
        the PermK paper and of EF21, 32 gives 64 k, as in CD-Adam's Table 2.

    alpha = k / d (PermK paper, Appendix G.1). NaN counts as larger than any number. The message
    carries the indices, whatever the paper charges.
    """

    k: int | float
    index_bits: int = 0
    lazy = on_device = True

    def check(self) -> None:
        super().check()
        require(self.index_bits >= 0, "compressor.index_bits", self.index_bits, "at least 0")

    def paper_bits(self, message: Message) -> np.ndarray:
        return same(message.form.workers, (FLOAT_BITS + self.index_bits) * self.K)

    def form(self, draw: Draw) -> ExplicitForm:
        return ExplicitForm(self.d, draw.workers, self.precision, self.K)

    def compress(self, v: np.ndarray | LazyRows, draw: Draw) -> Explicit:
        form = self.form(draw)
        if isinstance(v, LazyRows):
            indices, values = v.largest(self.K)
            return Explicit(form, indices, rounded(values, self.precision.wire))
        return form.take(v, largest(v, self.K))

    @property
    def alpha(self) -> float:
        return self.K / self.d


@compressor("bernoulli", "Bernoulli", {"p": "p"})
class Bernoulli(Compressor):
    """C(v) = v / p with probability p, else 0: a worker sends all or nothing.

    omega = 1/p - 1, zeta = p d. The coin is shared randomness and costs no bits. The paper bits are
    32 d for a worker that sends.
    """

    p: float
    seeded = lazy = on_device = True

    def check(self) -> None:
        require(0 < self.p <= 1, "compressor.p", self.p, "a number in (0, 1]")

    def form(self, draw: Draw) -> SeededForm:
        sends = draw.uniforms(1)[:, 0] < self.p
        ptr = np.zeros(draw.workers + 1, np.int64)
        np.cumsum(sends * self.d, out=ptr[1:])
        indices = np.tile(np.arange(self.d), int(sends.sum()))
        return SeededForm(self.d, draw.workers, self.precision, ptr, indices, 1 / self.p)

    def compress(self, v: np.ndarray | LazyRows, draw: Draw) -> Seeded:
        return self.form(draw).take(v)

    @property
    def omega(self) -> float:
        return 1 / self.p - 1

    @property
    def density(self) -> float:
        return self.p * self.d

    def paper_bits(self, message: Message) -> np.ndarray:
        assert isinstance(message, Seeded)
        return FLOAT_BITS * message.form.counts
