"""Unbiased compressors by random rounding: quantization with steps, QSGD, natural compression."""

from __future__ import annotations

from abc import abstractmethod
from math import sqrt
from typing import Any, Literal

import numpy as np
from numba import njit

from mpisim.compressors.base import Compressor, compressor
from mpisim.compressors.norms import rounded_norms
from mpisim.core.rng import Draw
from mpisim.core.schema import require
from mpisim.theory.compression import FLOAT_BITS
from mpisim.theory.quantization import cal_L_varying
from mpisim.wire.base import Message, pack_tensors, same
from mpisim.wire.codecs import CodecName
from mpisim.wire.exponents import CODE_BITS, NAN_CODE, Exponents, ExponentsForm
from mpisim.wire.levels import Levels, LevelsForm

Norm = Literal["2", "inf"]


class Stepped(Compressor):
    """Quantization with B norms, and s_ij = 1 / h_ij levels for coordinate j of worker i:

    C(v)_j = |v^l| sign(v_j) k_j h_j for j in block l, k_j = |v_j| / (|v^l| h_j) rounded at random,
    unbiased. So QSGD has one block and s_ij = s; in general 1 / h_ij need not be an integer.

    The norms are first rounded up to wire precision, and the levels are those of the norms that
    receivers see: C(v) is unbiased for that norm, and no level exceeds ceil(s_ij). Messages:
    `mpisim.wire.levels`. Paper bits: the same with 32 bits for each norm.

    ``norm`` is the paper's "2", or "inf" as in the published code. Bounds of the variance are those
    of the Euclidean norm, (10) and (14), for both. Coordinate j has at most the variance
    h_j |v| min(h_j |v|, |v_j|), |v| being the norm in use, and |v|_inf <= |v|_2.
    """

    norm: Norm
    codec: CodecName
    starts: np.ndarray
    on_device = True

    @abstractmethod
    def scales(self, draw: Draw) -> np.ndarray:
        """s = 1 / h: levels per unit of the norm, shape (1,), (d,) or (draw.workers, d)."""

    def check(self) -> None:
        self._forms: dict[tuple[int, int], LevelsForm] = {}

    def form(self, draw: Draw) -> LevelsForm:
        block = draw.first, draw.count
        if draw.clients is None and block in self._forms:  # the same in every round
            return self._forms[block]
        s = self.scales(draw)
        form = LevelsForm(self.d, draw.workers, self.precision, s, self.starts, self.codec)
        if draw.clients is None:
            self._forms[block] = form
        return form

    def norms(self, v: np.ndarray) -> np.ndarray:
        """|v_i| of each block as receivers see it, shape (workers, B), wire precision."""
        return rounded_norms(v, self.starts, self.norm, self.precision.wire)

    def compress(self, v: np.ndarray, draw: Draw) -> Levels:
        return self.compress_with(self.norms(v), v, draw)

    def words(self, draw: Draw) -> np.ndarray:
        """What a coordinate is rounded with, shape (draw.workers, d), uint64."""
        return draw.words(self.d)

    def compress_with(self, norms: np.ndarray, v: np.ndarray, draw: Draw) -> Levels:
        """`compress` with norms not below those of ``v``."""
        form = self.form(draw)
        if not isinstance(v, np.ndarray):
            return _levels_on_device(form, norms, v, draw)
        v = np.ascontiguousarray(v)
        levels = np.empty(v.shape, form.dtype)
        round_steps(v, norms, form.starts, form.s_by_worker, self.words(draw), levels)
        return Levels(form, norms, levels)

    def paper_bits(self, message: Message) -> np.ndarray:
        beyond = (self.starts.size - 1) * (self.precision.bits - FLOAT_BITS)
        return message.payload_bits - beyond if beyond else message.payload_bits


def levels_or_saq(s: int | None, d: int, n: int) -> int:
    """The key ``s``, or floor(sqrt(d) / n), at least 1: about d / n levels are not zero.

    The default is that of the baselines in SAQ's published code.
    """
    s = max(1, int(sqrt(d) // n)) if s is None else s
    require(1 <= s < 2**31, "compressor.s", s, "an integer from 1 to 2**31 - 1")
    return s


@compressor("qsgd", "QSGD", {"s": "s"})
class Qsgd(Stepped):
    """C(v)_j = |v| sign(v_j) l_j / s, with l_j = s |v_j| / |v| rounded at random, unbiased.

    s : number of levels, 1 to 2**31 - 1; `levels_or_saq` unless given
    norm : "2" (Alistarh et al., 2017, and SAQ, the smoothness-aware quantization paper) or "inf"
        (SAQ's published code)
    codec : "elias", "e1" or "entropy": `mpisim.wire.levels`

    The norm is first rounded up to wire precision, and the levels are those of the norm that
    receivers see: C(v) is unbiased for that norm, and no level exceeds s. With the Euclidean norm
    omega = min(d / s^2, sqrt(d) / s) and zeta = min(d, s sqrt(d)), since
    E|C(v)|_0 = sum_j min(1, s |v_j| / |v|) <= s |v|_1 / |v|. With the infinity norm

        omega = (sqrt(1 + (d - 1) / s^2) - 1) / 2,   zeta = d.

    This is the supremum: let y_j = s |v_j| / |v|_inf, one of them s, which is rounded exactly. The
    variance over |v|^2 is sum_j f(y_j) / (s^2 + sum_j y_j^2) over the other d - 1, f(y) = r (1 - r)
    with r the fraction of y; it is below w for all y if (d - 1) max_y (f(y) - w y^2) <= w s^2. The
    maximum is at y = 1 / (2 (1 + w)) < 1, with value 1 / (4 (1 + w)), so the smallest such w solves
    4 s^2 w (1 + w) = d - 1.

    A vector without a finite norm on the wire decodes to NaN.
    """

    s: int | None = None
    norm: Norm = "2"
    codec: CodecName = "elias"
    in_ensembles = True

    def check(self) -> None:
        super().check()
        self.s = self._s = levels_or_saq(self.s, self.d, self.n)  # copies for other d keep this s
        self.starts = np.array([0, self.d])

    def form(self, draw: Draw) -> LevelsForm:
        return LevelsForm.uniform(self.d, draw.workers, self.precision, self._s, self.codec)

    def scales(self, draw: Draw) -> np.ndarray:
        return np.array([float(self._s)])

    @property
    def omega(self) -> float:
        if self.norm == "inf":
            return (sqrt(1 + (self.d - 1) / self._s**2) - 1) / 2
        return min(self.d / self._s**2, sqrt(self.d) / self._s)

    @property
    def density(self) -> float:
        return min(float(self.d), self._s * sqrt(self.d)) if self.norm == "2" else float(self.d)

    def cal_L(self, matrix: np.ndarray, worker: int) -> float | None:
        if self.norm == "inf":
            return super().cal_L(matrix, worker)
        return cal_L_varying(matrix.diagonal(), np.full(self.d, 1 / self._s))


@compressor("sparse-dithering", "sparse dithering", {"nu": "ν"})
class SparseDithering(Stepped):
    """C(v)_j = 2 h |v| sign(v_j) k_j, k_j the integer nearest to |v_j| / (2 h |v|), h = sqrt(nu/d).

    nu : the largest error, from 2^-80 to below 1
    codec : as of `qsgd`

    C draws nothing and is biased. A coordinate errs by at most min(|v_j|, h |v|): alpha = 1 - nu
    for every v, which equal entries attain for nu = 1/9. Levels are sparse: with h |v| (2 k_j - 1)
    at most |v_j| where k_j > 0, the sum of (2 k_j - 1)^2 over these is at most d / nu. The norm is
    first rounded up to wire precision.

    The name is that of Albasyoni, Safaryan, Condat and Richtarik (2020), whose text was not read:
    this rule and its constants are derived here. Rounded at random it is `qsgd`, s = 1 / (2 h).
    """

    nu: float
    codec: CodecName = "entropy"

    norm = "2"
    on_device = False

    def check(self) -> None:
        super().check()
        require(2**-80 <= self.nu < 1, "compressor.nu", self.nu, "a number from 2^-80 to below 1")
        self.starts = np.array([0, self.d])

    def scales(self, draw: Draw) -> np.ndarray:
        return np.array([sqrt(self.d / self.nu) / 2])

    def words(self, draw: Draw) -> np.ndarray:
        """One half each: a coordinate goes up if its fraction is larger."""
        return np.broadcast_to(np.uint64(1 << 63), (draw.workers, self.d))

    @property
    def alpha(self) -> float:
        return 1 - self.nu


@compressor("natural", "natural compression", {})
class Natural(Compressor):
    """C(v)_j: v_j rounded at random to a neighbouring power of two (Horvath et al., 2019).

    omega = 1/8 and E C(v) = v for coordinates that are 0 or normal float32,
    2^-126 <= |v_j| < 2^128. Below, v_j is rounded to 0 or 2^-126, still unbiased, with more
    relative variance. From 2^128 on there is no code, and C(v)_j is NaN. A coordinate takes 9 bits:
    sign and exponent.

    codec : "paper", those 9 bits, or "entropy", about the entropy of the codes:
        `mpisim.wire.codecs.symbols`. What the paper charges is 9 bits with both.
    """

    codec: Literal["paper", "entropy"] = "paper"
    on_device = in_ensembles = True
    omega = 1 / 8

    def form(self, draw: Draw) -> ExponentsForm:
        return ExponentsForm(self.d, draw.workers, self.precision, self.codec)

    def compress(self, v: np.ndarray, draw: Draw) -> Exponents:
        if not isinstance(v, np.ndarray):
            return _exponents_on_device(self.form(draw), v, draw)
        codes = np.empty(v.shape, np.uint16)
        numbers = np.ascontiguousarray(v, np.float64)
        _round_exponents(numbers, numbers.view(np.int64), draw.words(self.d), codes)
        return Exponents(self.form(draw), codes)

    def paper_bits(self, message: Message) -> np.ndarray:
        return same(message.form.workers, CODE_BITS * self.d)

    def cal_L(self, matrix: np.ndarray, worker: int) -> float:
        return float(matrix.diagonal().max()) / 8  # coordinates err independently


@njit(cache=True)
def uniform(word):
    """A 64-bit word as a float64 in [0, 1), as in `Draw.uniforms`."""
    return np.float64(np.int64(word >> np.uint64(11))) * 2.0**-53


@njit(cache=True, error_model="numpy")
def round_steps(v, norms, starts, s, words, levels):
    """levels (m, d): s_ij |v_ij| / norm_ib, rounded at random with words (m, d), with sign.

    norms : shape (m, B); s : shape (1 or m, 1 or d). |v_ij| <= norm_ib makes |v_ij| / norm_ib <= 1
    exactly, so no level exceeds ceil(s_ij). A norm of zero or NaN gives zeros.
    """
    for i in range(v.shape[0]):
        s_i = s[min(i, s.shape[0] - 1)]
        for b in range(starts.size - 1):
            norm, common = np.float64(norms[i, b]), s_i[0]
            first, last = np.uint64(starts[b]), np.uint64(starts[b + 1])  # so that loops vectorize
            if not norm > 0:
                for j in range(first, last):
                    levels[i, j] = 0
            elif s_i.size == 1:
                for j in range(first, last):
                    levels[i, j] = _level(v[i, j], norm, common, words[i, j])
            else:
                for j in range(first, last):
                    levels[i, j] = _level(v[i, j], norm, s_i[j], words[i, j])


@njit(cache=True, error_model="numpy", forceinline=True)
def _level(x, norm, s, word):
    y = abs(np.float64(x)) / norm * s
    low = np.floor(y)
    level = np.int64(low) + np.int64(uniform(word) < y - low)
    return -level if x < 0 else level


@njit(cache=True)
def _round_exponents(v, bits, words, codes):
    """Codes of `mpisim.wire.exponents`: |v| = 2^e (1 + r) goes up with probability r."""
    for i in range(v.shape[0]):
        for j in range(v.shape[1]):
            exponent = ((bits[i, j] >> 52) & 0x7FF) - 1023
            u = uniform(words[i, j])
            if exponent >= 128:
                code = NAN_CODE
            elif exponent >= -126:
                fraction = (bits[i, j] & ((1 << 52) - 1)) * 2.0**-52
                code = exponent + 127 + int(u < fraction)
                code |= NAN_CODE * int(v[i, j] < 0)
            else:
                code = int(u < abs(v[i, j]) * 2.0**126)
                code |= NAN_CODE * (code & int(v[i, j] < 0))
            codes[i, j] = code


def _levels_on_device(form: LevelsForm, norms: np.ndarray, v: Any, draw: Draw) -> Any:
    """The message with levels of ``v`` (m, d) for norms (m, B), rounded with the draw's words."""
    import torch

    from mpisim.core.numerics import tensors
    from mpisim.wire.placed import level_type, steps

    levels = torch.empty(v.shape, dtype=tensors.dtype_of(level_type(form)), device=v.device)
    starts = form.starts.tolist()
    for i, row in enumerate(v):
        s = steps(form, i, v.device)
        words = draw.row_on(v.device, i, form.d)
        levels[i] = tensors.levels(row, s, norms[i].astype(np.float64).tolist(), starts, words)
    return pack_tensors(form, norms, levels)


def _exponents_on_device(form: ExponentsForm, v: Any, draw: Draw) -> Any:
    """The message with codes of ``v`` (m, d), rounded with the draw's words."""
    import torch

    from mpisim.core.numerics import tensors

    codes = torch.empty(v.shape, dtype=torch.int16, device=v.device)
    for i, row in enumerate(v):
        codes[i] = tensors.exponents(row, draw.row_on(v.device, i, form.d), NAN_CODE)
    return pack_tensors(form, codes)
