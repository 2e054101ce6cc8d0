"""Unbiased compressors by random rounding: QSGD and natural compression."""

from __future__ import annotations

from math import sqrt
from typing import Literal

import numpy as np
from numba import njit

from mpisim.compressors import placed
from mpisim.compressors.base import Compressor, compressor
from mpisim.compressors.norms import max_norms, two_norms
from mpisim.core.rng import Draw
from mpisim.core.schema import require
from mpisim.theory.compression import FLOAT_BITS
from mpisim.theory.quantization import cal_L_varying
from mpisim.wire.base import Message
from mpisim.wire.codecs import CODECS, CodecName
from mpisim.wire.codecs.bits import raw, round_into
from mpisim.wire.exponents import NAN_CODE, Exponents, ExponentsForm
from mpisim.wire.levels import Levels, LevelsForm


def levels_or_saq(s: int | None, d: int, n: int) -> int:
    """The key ``s``, or floor(sqrt(d) / n), at least 1: about d / n levels are not zero.

    The default is that of the baselines in SAQ's published code.
    """
    s = max(1, int(sqrt(d) // n)) if s is None else s
    require(1 <= s < 2**31, "compressor.s", s, "an integer from 1 to 2**31 - 1")
    return s


@compressor("qsgd", "QSGD", {"s": "s"})
class Qsgd(Compressor):
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

    Messages: ``mpisim.wire.levels``. Paper bits: the same with 32 bits for the norm. A vector
    without a finite norm on the wire decodes to NaN.
    """

    s: int | None = None
    norm: Literal["2", "inf"] = "2"
    codec: CodecName = "elias"
    on_device = True

    def check(self) -> None:
        self.s = self._s = levels_or_saq(self.s, self.d, self.n)  # copies for other d keep this s
        CODECS[self.codec].check()

    def form(self, draw: Draw) -> LevelsForm:
        return LevelsForm.uniform(self.d, draw.workers, self.precision, self._s, self.codec)

    def compress(self, v: np.ndarray, draw: Draw) -> Levels:
        if not isinstance(v, np.ndarray):
            form = self.form(draw)
            norms = placed.rounded_norms(v, form.starts, self.norm, self.precision.wire)
            return placed.levels_of(form, norms, v, draw)
        v = np.ascontiguousarray(v)
        return self.compress_with(self.norms(v), v, draw)

    def norms(self, v: np.ndarray) -> np.ndarray:
        """|v_i| as receivers see it, shape (workers,), wire precision."""
        norms = np.empty(len(v), self.precision.wire)
        _norms(v, self.norm == "2", norms, raw(norms))
        return norms

    def compress_with(self, norms: np.ndarray, v: np.ndarray, draw: Draw) -> Levels:
        """`compress` with norms not below those of ``v``, which is in C order."""
        form = self.form(draw)
        levels = np.empty(v.shape, form.dtype)
        round_levels(v, norms, float(self._s), draw.words(self.d), levels)
        return Levels(form, norms[:, None], levels)

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

    def paper_bits(self, message: Message) -> np.ndarray:
        beyond = self.precision.bits - FLOAT_BITS
        return message.payload_bits - beyond if beyond else message.payload_bits


@compressor("natural", "natural compression", {})
class Natural(Compressor):
    """C(v)_j: v_j rounded at random to a neighbouring power of two (Horvath et al., 2019).

    omega = 1/8 and E C(v) = v for coordinates that are 0 or normal float32,
    2^-126 <= |v_j| < 2^128. Below, v_j is rounded to 0 or 2^-126, still unbiased, with more
    relative variance. From 2^128 on there is no code, and C(v)_j is NaN. A coordinate takes 9 bits:
    sign and exponent.
    """

    on_device = True

    def form(self, draw: Draw) -> ExponentsForm:
        return ExponentsForm(self.d, draw.workers, self.precision)

    def compress(self, v: np.ndarray, draw: Draw) -> Exponents:
        if not isinstance(v, np.ndarray):
            return placed.exponents_of(self.form(draw), v, draw)
        codes = np.empty(v.shape, np.uint16)
        numbers = np.ascontiguousarray(v, np.float64)
        _round_exponents(numbers, numbers.view(np.int64), draw.words(self.d), codes)
        return Exponents(self.form(draw), codes)

    @property
    def omega(self) -> float:
        return 1 / 8

    def cal_L(self, matrix: np.ndarray, worker: int) -> float:
        return float(matrix.diagonal().max()) / 8  # coordinates err independently


@njit(cache=True)
def uniform(word):
    """A 64-bit word as a float64 in [0, 1), as in `Draw.uniforms`."""
    return np.float64(np.int64(word >> np.uint64(11))) * 2.0**-53


@njit(cache=True)
def _norms(v, euclidean, norms, unsigned):
    exact = two_norms(v) if euclidean else max_norms(v)
    round_into(exact, norms, unsigned, True)


@njit(cache=True, error_model="numpy")
def round_levels(v, norms, s, words, levels):
    """levels (m, d): s |v_j| / norm_i, at most s, rounded at random with words (m, d), with sign.

    |v_j| <= norm_i makes |v_j| / norm_i <= 1 exactly, so no level exceeds s. A norm of zero or NaN
    gives zeros.
    """
    m, d = v.shape
    for i in range(m):
        norm = np.float64(norms[i])
        if not norm > 0:
            levels[i] = 0
            continue
        for j in range(d):
            x = np.float64(v[i, j])
            y = abs(x) / norm * s
            low = np.floor(y)
            level = np.int64(low) + np.int64(uniform(words[i, j]) < y - low)
            levels[i, j] = -level if x < 0 else level


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
