"""Compressors that keep some coordinates: RandK, RandSeqK, TopK, TopLEK, Bernoulli, rand-tau."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal

import numpy as np

from mpisim.compressors.base import Compressor, WorkerRows, compressor
from mpisim.core.lazy_rows import LazyRows
from mpisim.core.numerics.select import largest
from mpisim.core.numerics.sums import rounded, squared_norms
from mpisim.core.protocols import Uplink
from mpisim.core.rng import Draw
from mpisim.core.schema import require, share_of
from mpisim.theory import quantization as theory
from mpisim.theory.compression import FLOAT_BITS
from mpisim.wire.base import Message, same
from mpisim.wire.fewer import Fewer, FewerForm
from mpisim.wire.sparse import Explicit, ExplicitForm, Seeded, SeededForm


class SeededCompressor(Compressor):
    """Keeps coordinates that server and workers both draw: a message is their values."""

    seeded = lazy = on_device = True

    @abstractmethod
    def form(self, draw: Draw) -> SeededForm:
        """The coordinates of ``draw``'s workers, and the scale of their values."""

    def compress(self, v: np.ndarray | LazyRows, draw: Draw) -> Seeded:
        return self.form(draw).take(v)

    def paper_bits(self, message: Message) -> np.ndarray:
        bits, sent = self.precision.bits, message.payload_bits
        return sent if bits == FLOAT_BITS else sent // bits * FLOAT_BITS


class KCoordinates(Compressor):
    """Keeps K coordinates: ``k``, or if that is below 1, its share of d, at least one."""

    k: int | float

    def check(self) -> None:
        k, d = self.k, self.d
        share = isinstance(k, float) and 0 < k < 1
        allowed = f"an integer from 1 to d = {d}, or a share of d below 1"
        require(share or (isinstance(k, int) and 1 <= k <= d), "compressor.k", k, allowed)
        self.K = max(1, share_of(k, d)) if share else int(k)

    @property
    def density(self) -> float:
        return float(self.K)


@compressor("randk", "RandK", {"k": "K"})
class RandK(SeededCompressor, KCoordinates):
    """C(v) = (d / k) v on k coordinates drawn without replacement, 0 elsewhere.

    omega = d/k - 1, zeta = k (MARINA, Definition 1.1). Workers draw independently, and the server
    redraws their coordinates: a message is k values. The papers charge 32 k bits.

    k : the number of coordinates, or a share of d below 1.
    scaled : false leaves out the d / k: then C is biased and contractive, alpha = k/d.
    shared : false where the server does not know the workers' random numbers: messages have the
        indices, too, as those of `topk`.
    codec : of these indices, "paper" or "entropy", as in `topk`

    This differs from the published MARINA code: there, all workers drew the same coordinates.
    """

    k: int | float
    scaled: bool = True
    shared: bool = True
    on_device = in_ensembles = True
    codec: Literal["paper", "entropy"] = "paper"

    def check(self) -> None:
        super().check()
        sent = "'paper' with shared = true, which sends no indices"
        require(self.codec == "paper" or not self.shared, "compressor.codec", self.codec, sent)
        if not self.shared:
            self.seeded = self.on_device = False

    def form(self, draw: Draw) -> SeededForm | ExplicitForm:  # type: ignore[override]
        scale = self.d / self.K if self.scaled else 1.0
        if not self.shared:
            return ExplicitForm(self.d, draw.workers, self.precision, self.K, self.codec, scale)
        rows = draw.subsets(self.d, self.K)
        return SeededForm.of_rows(self.d, self.precision, rows, scale)

    def compress(self, v: np.ndarray | LazyRows, draw: Draw) -> Any:
        form = self.form(draw)
        if isinstance(form, ExplicitForm):
            return form.take(v, draw.subsets(self.d, self.K))
        return form.take(v)

    def paper_bits(self, message: Message) -> np.ndarray:
        return same(message.form.workers, FLOAT_BITS * self.K)

    @property
    def omega(self) -> float | None:
        return self.d / self.K - 1 if self.scaled else None

    @property
    def alpha(self) -> float | None:
        return super().alpha if self.scaled else self.K / self.d

    def cal_L(self, matrix: np.ndarray, worker: int) -> float | None:
        return theory.cal_L_subsets(matrix, self.K) if self.scaled else None


class Largest(KCoordinates):
    """Keeps the K coordinates largest in absolute value, or fewer with the same alpha."""

    @property
    def alpha(self) -> float:
        return self.K / self.d


@compressor("topk", "TopK", {"k": "K"})
class TopK(Largest):
    """C(v) = v on the k coordinates largest in absolute value, 0 elsewhere; ties: the lower index.

    k : the number of coordinates, or a share of d below 1.

    index_bits : what the paper bits charge for each index. 0 gives 32 k, as in the experiments of
        the PermK paper and of EF21, 32 gives 64 k, as in CD-Adam's Table 2.

    codec : "paper", the shorter of two plain codes of the indices, or "entropy", log2 C(d, k) bits
        for all of them: `mpisim.wire.codecs.places`.

    alpha = k / d (PermK paper, Appendix G.1). NaN counts as larger than any number. The message
    carries the indices, whatever the paper charges.
    """

    k: int | float
    index_bits: int = 0
    codec: Literal["paper", "entropy"] = "paper"
    lazy = on_device = in_ensembles = True

    def check(self) -> None:
        super().check()
        require(self.index_bits >= 0, "compressor.index_bits", self.index_bits, "at least 0")

    def paper_bits(self, message: Message) -> np.ndarray:
        return same(message.form.workers, (FLOAT_BITS + self.index_bits) * self.K)

    def form(self, draw: Draw) -> ExplicitForm:
        return ExplicitForm(self.d, draw.workers, self.precision, self.K, self.codec)

    def compress(self, v: np.ndarray | LazyRows, draw: Draw) -> Explicit:
        form = self.form(draw)
        if isinstance(v, LazyRows):
            indices, values = v.largest(self.K)
            return Explicit(form, indices, rounded(values, self.precision.wire))
        return form.take(v, largest(v, self.K))


@compressor("randseqk", "RandSeqK", {"k": "K"})
class RandSeqK(SeededCompressor, KCoordinates):
    """C(v) = (d / k) v on k coordinates in a row, of which the first is drawn, 0 elsewhere.

    After the last coordinate comes the first one. omega = d/k - 1 and zeta = k, as of RandK, of
    which it is the form that reads memory in order (u-FedNL's published code). Workers draw
    independently, and the server redraws their coordinates.

    k : the number of coordinates, or a share of d below 1.
    """

    k: int | float

    def form(self, draw: Draw) -> SeededForm:
        first = (draw.uniforms(1) * self.d).astype(np.int64)
        rows = np.sort((first + np.arange(self.K)) % self.d, axis=1)
        return SeededForm.of_rows(self.d, self.precision, rows, self.d / self.K)

    @property
    def omega(self) -> float:
        return self.d / self.K - 1


@compressor("toplek", "TopLEK", {"k": "K"})
class TopLEK(Largest):
    """C(v) = v on at most k coordinates largest in absolute value, so few that alpha = k / d.

    TopK with j coordinates leaves t_j of |v|^2. With t_j <= (1 - alpha) |v|^2 <= t_{j-1} it keeps
    j - 1 or j of them at random. Then E |C(v) - v|^2 = (1 - alpha) |v|^2.

    k : the most coordinates, or a share of d below 1.
    codec : of their indices, as in `topk`

    The message has the number of coordinates and their indices. NaN counts as larger than any
    number; where v is not finite k coordinates are kept. This differs from the published code
    (u-FedNL), which adds |v|^2 / 10 in these comparisons and in the probability.
    """

    k: int | float
    codec: Literal["paper", "entropy"] = "paper"

    def form(self, draw: Draw) -> FewerForm:
        return FewerForm(self.d, draw.workers, self.precision, self.K, self.codec)

    def compress(self, v: np.ndarray, draw: Draw) -> Fewer:
        kept = largest(v, self.K)
        rows = np.take_along_axis(v, kept, axis=1)
        order = np.argsort(-np.abs(rows), axis=1, kind="stable")
        with np.errstate(over="ignore", invalid="ignore"):
            # a power of two for each row, so that squares neither overflow nor vanish
            _, power = np.frexp(np.abs(rows).max(axis=1, keepdims=True).astype(np.float64))
            scaled = np.ldexp(np.ascontiguousarray(v, np.float64), -power)
            squares = np.take_along_axis(scaled, np.take_along_axis(kept, order, 1), axis=1) ** 2
            total = squared_norms(scaled)
            left = total[:, None] - np.cumsum(np.pad(squares, ((0, 0), (1, 0))), axis=1)
            target = (1 - self.alpha) * total
            enough = left <= target[:, None]
            j = np.where(enough.any(axis=1), enough.argmax(axis=1), self.K)[:, None]
            t_j, before = (np.take_along_axis(left, i, 1)[:, 0] for i in (j, np.maximum(j - 1, 0)))
            fewer = draw.uniforms(1)[:, 0] * (before - t_j) < target - t_j
        counts = np.where(np.isfinite(total), j[:, 0] - fewer, self.K)
        keep = np.argsort(order, axis=1) < counts[:, None]
        ptr = np.concatenate([[0], np.cumsum(keep.sum(axis=1))])
        return Fewer(self.form(draw), ptr, kept[keep], rounded(rows[keep], self.precision.wire))

    def paper_bits(self, message: Any) -> np.ndarray:
        return FLOAT_BITS * np.diff(message.ptr)


@compressor("bernoulli", "Bernoulli", {"p": "p"})
class Bernoulli(SeededCompressor):
    """C(v) = v / p with probability p, else 0: a worker sends all or nothing.

    omega = 1/p - 1, zeta = p d. The coin is shared randomness and costs no bits. The paper bits are
    32 d for a worker that sends.
    """

    random_length = True
    p: float

    def check(self) -> None:
        require(0 < self.p <= 1, "compressor.p", self.p, "a number in (0, 1]")

    def form(self, draw: Draw) -> SeededForm:
        sends = draw.uniforms(1)[:, 0] < self.p
        ptr = np.concatenate([[0], np.cumsum(sends * self.d)])
        indices = np.tile(np.arange(self.d), int(sends.sum()))
        return SeededForm.of(self.d, self.precision, ptr, indices, 1 / self.p)

    @property
    def omega(self) -> float:
        return 1 / self.p - 1

    @property
    def density(self) -> float:
        return self.p * self.d


@compressor("rand-tau", "rand-τ", {"tau": "τ"})
class RandTau(SeededCompressor):
    """C(v)_j = v_j / p with probability p = tau / d, else 0, independently for all j.

    tau : expected number of coordinates sent, above 0 and at most d; d / n unless given

    omega = d / tau - 1, zeta = tau, cal-L(C, L) = (d / tau - 1) max_j L_jj, exactly. Workers draw
    independently, and the server redraws their coordinates: a message is the values. The paper
    bits are 32 tau for any draw, as SAQ's published code charges.
    """

    lazy, random_length = False, True
    tau: float | None = None

    def check(self) -> None:
        self._tau = self.d / self.n if self.tau is None else float(self.tau)
        allowed = f"above 0, at most d = {self.d}"
        require(0 < self._tau <= self.d, "compressor.tau", self._tau, allowed)
        self.p: WorkerRows | None = None
        self._common = np.full(self.d, self._tau / self.d)
        self._omega = theory.cal_L_independent(np.ones(self.d), self._common)

    def form(self, draw: Draw) -> SeededForm:
        p = self._common if self.p is None else self.p.of(draw)
        drawn = draw.uniforms(self.d) < p
        ptr = np.concatenate([[0], np.cumsum(drawn.sum(axis=1))])
        workers, indices = (np.ascontiguousarray(axis) for axis in np.nonzero(drawn))
        scale = self.d / self._tau if self.p is None else 1 / p[workers, indices]
        return SeededForm.of(self.d, self.precision, ptr, indices, scale)

    @property
    def omega(self) -> float:
        return self._omega

    @property
    def density(self) -> float:
        return min(float(self.d), self._tau)

    def cal_L(self, matrix: np.ndarray, worker: int) -> float:
        p = self._common if self.p is None else self.p.one(worker)
        return theory.cal_L_independent(matrix.diagonal(), p)

    def paper_bits(self, message: Message) -> np.ndarray:
        return same(message.form.workers, round(FLOAT_BITS * self._tau))


@compressor("rand-tau-plus", "rand-τ+", {"tau": "τ"})
class RandTauPlus(RandTau):
    """C(v)_j = v_j / p_ij with probability p_ij: rand-tau+ of Safaryan et al. (2021).

    tau : sum_j p_ij, above 0 and at most d; d / n unless given
    scheme : "diana": probabilities for DIANA+, "dcgd": for DCGD+

    Inside `smooth` the p_ij are optimal for Diag(L_i). The server knows L_i^{1/2} and computes the
    same p_ij, so nothing more is sent. Outside they are those of L_i = I: rand-tau.
    omega_i = max_j 1/p_ij - 1 and cal-L_i = max_j (1/p_ij - 1) L_i;jj.

    This differs from the published code, which does not divide by p_ij and is biased.
    """

    scheme: theory.Scheme = "diana"

    def fit(self, star: Uplink, diagonals: WorkerRows, n_mu: float) -> None:
        n_mu = n_mu if self.scheme == "diana" else 0.0
        self.p = diagonals.map(lambda row: theory.probabilities(row, self._tau, n_mu))
        workers = range(star.first, star.first + star.m)
        worst = [theory.cal_L_independent(np.ones(self.d), self.p.one(i)) for i in workers]
        self._omega = float(star.all_workers(np.array(worst).reshape(star.m, 1)).max())
