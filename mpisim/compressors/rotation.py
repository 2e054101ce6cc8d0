"""Compressors with a seeded rotation, or seeded directions, of the whole vector.

DRIVE, EDEN, and any other compressor, after a rotation that spreads the vector; spherical
compression: its length, and which of some random directions is the nearest.
"""

from __future__ import annotations

import dataclasses
from functools import cache
from itertools import pairwise
from math import fsum
from statistics import NormalDist
from typing import Literal

import numpy as np

from mpisim.compressors.base import Compressor, compressor
from mpisim.compressors.norms import block_norms, one_norms
from mpisim.core.errors import InputError
from mpisim.core.numerics.functions import exp, log, normal_quantiles
from mpisim.core.numerics.lanes import dot
from mpisim.core.rng import Draw
from mpisim.core.schema import require
from mpisim.theory.compression import FLOAT_BITS
from mpisim.wire.base import Form, Message, same
from mpisim.wire.codecs.bits import round_scales
from mpisim.wire.composed import Directions, DirectionsForm, Rotated, RotatedForm
from mpisim.wire.signs import Points, PointsForm, SignsForm

PointsCodec = Literal["paper", "entropy"]
NORMALS = normal_quantiles((np.arange(1 << 12) + 0.5) / (1 << 12))  # equally likely


class Rotating(Compressor):
    """C(v) = R^T Q(R v) with R = H diag(e) / sqrt(D), H a Hadamard matrix and e random signs.

    D is the least power of two >= d, and v is padded with zeros. Signs are shared randomness, each
    worker's own, and cost no bits. R keeps lengths and R^T R = I, so C has the constants of Q in
    dimension D; leaving out the last D - d coordinates makes no error larger.
    """

    shares: tuple[float, ...] = ()  # of the points, for an entropy code

    def check(self) -> None:
        self.D = 1 << (self.d - 1).bit_length()

    def rotated(self, draw: Draw, inner: Form) -> RotatedForm:
        """The form of messages ``inner`` with the rotations of ``draw``."""
        signs = dataclasses.replace(draw, purpose=f"{draw.purpose}/rotation")
        words = signs.words(-(-self.D // 64))
        bits = np.unpackbits(words.view(np.uint8), axis=1, count=self.D)
        return RotatedForm(self.d, draw.workers, self.precision, inner, 1.0 - 2.0 * bits)


@compressor("drive", "DRIVE", {})
class Drive(Rotating):
    """C(v) = S R^T sign(R v), one bit a coordinate after a random rotation R: `Rotating`.

    scale : "least", S = |R v|_1 / D, which has the least error, or "unbiased", S = |v|^2 / |R v|_1,
        the scale of DRIVE's published code (Vargaftik et al., 2021)

    With "least", E|C(v) - v|^2 = |v|^2 - E|R v|_1^2 / D, and alpha = 1/2 for every v: the
    coordinates of R v are sums of v_j with random signs, divided by sqrt(D), so Khintchine's
    inequality with Szarek's constant gives each a mean size of at least |v| / sqrt(2 D). Vectors
    with two equal entries attain it. For long vectors of normal entries the error is near
    (1 - 2 / pi) |v|^2.

    With "unbiased", E C(v) = v for rotations that are uniform. For Hadamard matrices this holds
    nearly, for vectors with many entries, so omega is None; at two entries C(v) loses the smaller
    one. Long vectors have |C(v) - v|^2 near (pi / 2 - 1) |v|^2.
    """

    scale: Literal["least", "unbiased"] = "least"

    def form(self, draw: Draw) -> RotatedForm:
        return self.rotated(draw, SignsForm(self.D, draw.workers, self.precision))

    def compress(self, v: np.ndarray, draw: Draw) -> Rotated:
        form = self.form(draw)
        z = form.rotate(v)
        starts = np.array([0, self.D])
        lengths = one_norms(z, starts)
        if self.scale == "least":
            scales = lengths / self.D
        else:
            with np.errstate(invalid="ignore", over="ignore"):
                squares = block_norms(z, starts, True) ** 2
                scales = np.divide(squares, lengths, out=lengths, where=lengths != 0)
        signs = form.inner.pack(scales, z)  # type: ignore[attr-defined]
        return Rotated(form, signs)

    @property
    def alpha(self) -> float | None:
        return 1 / 2 if self.scale == "least" else None

    def paper_bits(self, message: Message) -> np.ndarray:
        return same(message.form.workers, FLOAT_BITS + self.D)


@compressor("eden", "EDEN", {"bits": "b"})
class Eden(Rotating):
    """C(v) = S R^T c, c_j the nearest of 2^b points to sqrt(D) (R v)_j / |v|: `Rotating`.

    bits : b, the bits a coordinate, from 1 to 6; with 1 it is DRIVE
    scale : "unbiased", S = |v|^2 / <R v, c>, as in EDEN's code (Vargaftik et al., 2022), or
        "least", S = <R v, c> / |c|^2, which has the least error

    The points are those with the least mean squared error D_b for normal variables (Lloyd and Max):
    0.3634, 0.1175, 0.0345, 0.0095 for b = 1, ..., 4. Long vectors of normal entries have
    |C(v) - v|^2 near D_b |v|^2 with "least", and D_b / (1 - D_b) |v|^2 with "unbiased". As with
    DRIVE, E C(v) = v holds for uniform rotations, and only nearly for Hadamard matrices: omega is
    None.

    codec : "paper", b bits a coordinate, or "entropy", about the entropy of the points
    """

    bits: int = 2
    scale: Literal["least", "unbiased"] = "unbiased"
    codec: PointsCodec = "paper"

    def check(self) -> None:
        super().check()
        require(1 <= self.bits <= 6, "compressor.bits", self.bits, "an integer from 1 to 6")
        if self.codec == "entropy":
            points = normal_points(self.bits)
            cuts = (points[1:] + points[:-1]) / 2
            nearest = np.searchsorted(cuts, NORMALS)[:, None]
            self.shares = shares_of(nearest == np.arange(points.size))

    def form(self, draw: Draw) -> RotatedForm:
        block = draw.workers, self.precision
        return self.rotated(draw, PointsForm(self.D, *block, normal_points(self.bits), self.shares))

    def compress(self, v: np.ndarray, draw: Draw) -> Rotated:
        form, points = self.form(draw), normal_points(self.bits)
        z = form.rotate(v)
        lengths = block_norms(z, np.array([0, self.D]), True) / self.D**0.5
        u = z / np.where(np.isfinite(lengths) & (lengths > 0), lengths, 1)
        which = np.searchsorted((points[1:] + points[:-1]) / 2, u)
        c = points[which]
        with np.errstate(invalid="ignore"):
            along = np.array([dot(*rows) for rows in zip(u, c, strict=True)])
            if self.scale == "least":
                factors = along / [dot(row, row) for row in c]
            else:
                factors = self.D / np.where(along == 0, 1, along)
            scales = round_scales(lengths * factors[:, None], self.precision.wire)
        return Rotated(form, Points(form.inner, scales, which))  # type: ignore[arg-type]

    def paper_bits(self, message: Message) -> np.ndarray:
        return same(message.form.workers, FLOAT_BITS + self.bits * self.D)


def shares_of(taken: np.ndarray) -> tuple[float, ...]:
    """How often each size of 2^b symmetric points is taken, the least first.

    taken : the probability of each point for each of `NORMALS`, shape (normals, 2^b)
    """
    half = taken.shape[1] // 2
    return tuple(2 * fsum(column) / len(taken) for column in taken.T[half:])


@cache
def normal_points(b: int) -> np.ndarray:
    """2^b points with the least mean squared error for a normal variable, multiples of 2^-20."""
    normal = NormalDist()
    first = [3**0.5 * normal.inv_cdf(0.5 + (t + 0.5) / 2**b) for t in range(2 ** (b - 1))]
    for _ in range(2000):  # Lloyd's iteration: a point is the mean of what is nearest to it
        cuts = [0.0, *((p + q) / 2 for p, q in pairwise(first))]
        at = [*((normal.cdf(x), normal.pdf(x)) for x in cuts), (1.0, 0.0)]
        first = [(a[1] - z[1]) / (z[0] - a[0]) for a, z in pairwise(at)]
    positive = np.round(np.array(first) * 2**20) / 2**20
    return np.concatenate([-positive[::-1], positive])


@compressor("rotated", "rotated", {})
class RotatedFirst(Rotating):
    """C(v) = R^T Q(R v) with Q = ``inner`` and a random rotation R: `Rotating`.

    inner : a compressor of vectors in dimension D, which has the worst case of no vector more often
        than of another. `qsgd` with norm = "inf" needs few bits then, as no coordinate is large.

    omega and alpha are those of Q in dimension D; zeta = d, as the rotation back fills all places.
    """

    inner: Compressor

    def check(self) -> None:
        super().check()
        self.inner = inner = self.bind_inner("inner", self.D)
        if inner.fitted or inner.correlated or isinstance(inner, Rotating):
            raise InputError(
                f"compressor.inner.name: {inner.name!r} is not allowed; it must not rotate or be"
                " fitted to the problem, and workers must draw independently"
            )

    def form(self, draw: Draw) -> RotatedForm:
        return self.rotated(draw, self.inner.form(draw))

    def compress(self, v: np.ndarray, draw: Draw) -> Rotated:
        form = self.form(draw)
        return Rotated(form, self.inner.compress(form.rotate(v), draw))

    @property
    def omega(self) -> float | None:
        return self.inner.omega

    @property
    def alpha(self) -> float | None:
        return self.inner.alpha

    def paper_bits(self, message: Message) -> np.ndarray:
        assert isinstance(message, Rotated)
        return self.inner.paper_bits(message.inner)


STEPS = 1 << 18  # of an integral


@compressor("spherical", "spherical", {"bits": "b"})
class Spherical(Compressor):
    """C(v) = S u, u the nearest to v of 2^b directions, uniform on the sphere.

    Both sides draw the directions, for each message anew: a message has S and b bits.

    bits : b, from 1 to 12; compressing takes 2^b d normal numbers, and decoding d
    scale : "unbiased", S = |v| / m, or "least", S = m |v|, which has the least error

    m is the mean cosine of the angle between u and v, the mean of the largest of 2^b cosines. By
    symmetry E u = m v / |v| for every v. So "unbiased" has E C(v) = v and omega = 1 / m^2 - 1,
    "least" has alpha = m^2, and every v attains them. In many dimensions m^2 is below 1.39 b / d:
    0.32 b / d for b = 1, and b / d for b = 8. This is for short vectors, or to send next to
    nothing.

    The name is that of Albasyoni, Safaryan, Condat and Richtarik (2020), whose text was not read:
    this rule and its constants are derived here.
    """

    bits: int = 8
    scale: Literal["unbiased", "least"] = "unbiased"

    def check(self) -> None:
        require(1 <= self.bits <= 12, "compressor.bits", self.bits, "an integer from 1 to 12")
        self.m = mean_cosine(self.d, self.bits)

    def form(self, draw: Draw) -> DirectionsForm:
        inner = PointsForm(1, draw.workers, self.precision, np.empty(1 << self.bits))
        return DirectionsForm(self.d, draw.workers, self.precision, inner, draw)

    def compress(self, v: np.ndarray, draw: Draw) -> Directions:
        form, starts = self.form(draw), np.array([0, self.d])
        lengths = block_norms(np.ascontiguousarray(v, np.float64), starts, True)
        factor = self.m if self.scale == "least" else 1 / self.m
        scales = round_scales(lengths * factor, self.precision.wire)
        return Directions(form, Points(form.inner, scales, form.nearest(v)))

    @property
    def omega(self) -> float | None:
        return 1 / self.m**2 - 1 if self.scale == "unbiased" else None

    @property
    def alpha(self) -> float | None:
        return self.m**2 if self.scale == "least" else super().alpha

    def paper_bits(self, message: Message) -> np.ndarray:
        return same(message.form.workers, FLOAT_BITS + self.bits)


@cache
def mean_cosine(d: int, b: int) -> float:
    """E max cos of 2^b independent uniform directions' angles to a fixed one, in d dimensions.

    1 - int sin(t) P(t)^(2^b) dt over [0, pi], P(t) the probability of an angle above t, whose
    density is proportional to sin(t)^(d-2). With w = t' / (1 + t'), t' = tan(t / 2), sin(t) is
    2 w (1 - w) / q and dt is 2 dw / q, with q = w^2 + (1 - w)^2.
    """
    if d == 1:
        return 1 - 2.0 ** (1 - 2**b)
    w = (np.arange(STEPS) + 0.5) / STEPS
    q = w**2 + (1 - w) ** 2
    sine = 2 * w * (1 - w) / q
    weights = exp(np.maximum((d - 2) * log(sine), -700)) / q
    below = np.cumsum(weights)
    above = 1 - (below - weights / 2) / below[-1]
    for _ in range(b):
        above *= above
    return float(1 - 2 / STEPS * np.cumsum(sine / q * above)[-1])
