"""Compressors that keep some coordinates: RandK, TopK, Bernoulli."""

from __future__ import annotations

import numpy as np

from mpisim.compressors.base import Compressor, compressor
from mpisim.compressors.select import largest
from mpisim.core.lazy_rows import LazyRows
from mpisim.core.rng import Draw
from mpisim.core.schema import require
from mpisim.theory.compression import FLOAT_BITS
from mpisim.theory.quantization import cal_L_subsets
from mpisim.wire.base import Message, same
from mpisim.wire.explicit import Explicit, ExplicitForm
from mpisim.wire.sparse import Seeded, SeededForm


@compressor("randk")
class RandK(Compressor):
    """C(v) = (d / k) v on k coordinates drawn without replacement, 0 elsewhere.

    omega = d/k - 1, zeta = k (MARINA, Section 1.2). Workers draw independently of each other, and
    the server redraws their coordinates: a message is k values. The papers charge 32 k bits.

    k : the number of coordinates, or a share of d below 1.
    scaled : false leaves out the d / k: then C is biased and contractive, alpha = k/d.

    Where this differs from the published MARINA code: there, all workers drew alike.
    """

    k: int | float
    scaled: bool = True
    seeded = lazy = True

    def check(self) -> None:
        self.K = count(self.k, self.d)

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

    @property
    def density(self) -> float:
        return float(self.K)

    def cal_L(self, matrix: np.ndarray, worker: int) -> float | None:
        return cal_L_subsets(matrix, self.K) if self.scaled else None

    def paper_bits(self, message: Message) -> np.ndarray:
        return same(message.form.workers, FLOAT_BITS * self.K)


@compressor("topk")
class TopK(Compressor):
    """C(v) = v on the k coordinates largest in absolute value, 0 elsewhere; ties: the lower index.

    k : the number of coordinates, or a share of d below 1.

    alpha = k / d (PermK paper, Appendix F). NaN counts as larger than any number. The message
    carries the indices; the paper bits are 32 k all the same, which is what the permutation
    compressors' and EF21's experiments charge.
    """

    k: int | float
    lazy = True

    def check(self) -> None:
        self.K = count(self.k, self.d)

    def form(self, draw: Draw) -> ExplicitForm:
        return ExplicitForm(self.d, draw.workers, self.precision, self.K)

    def compress(self, v: np.ndarray | LazyRows, draw: Draw) -> Explicit:
        form = self.form(draw)
        if isinstance(v, np.ndarray):
            return form.take(v, largest(v, self.K))
        indices = np.empty((draw.workers, self.K), np.int64)
        values = np.empty((draw.workers, self.K), self.precision.wire)
        for which, rows in v.parts():
            part = form.take(rows, largest(rows, self.K))
            indices[which], values[which] = part.indices, part.values
        return Explicit(form, indices, values)

    @property
    def alpha(self) -> float:
        return self.K / self.d

    @property
    def density(self) -> float:
        return float(self.K)

    def paper_bits(self, message: Message) -> np.ndarray:
        return same(message.form.workers, FLOAT_BITS * self.K)


@compressor("bernoulli")
class Bernoulli(Compressor):
    """C(v) = v / p with probability p, else 0: the worker sends all or nothing.

    omega = 1/p - 1, zeta = p d. The coin is shared randomness and costs no bits. The paper bits are
    32 d for a worker that sends.
    """

    p: float
    seeded = lazy = True

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


def count(k: int | float, d: int) -> int:
    """K from the key ``k``: a number of coordinates, or a share of d below 1, at least one."""
    if isinstance(k, float) and 0 < k < 1:
        return max(1, int(k * d))
    whole = isinstance(k, int) and 1 <= k <= d
    require(whole, "compressor.k", k, f"an integer from 1 to d = {d}, or a share of d below 1")
    return int(k)
