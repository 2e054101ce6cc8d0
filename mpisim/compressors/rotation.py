"""Compressors of vectors that a seeded rotation has spread: DRIVE, and any other after it."""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np

from mpisim.compressors.base import Compressor, compressor
from mpisim.compressors.norms import block_norms, one_norms
from mpisim.core.errors import InputError
from mpisim.core.rng import Draw
from mpisim.theory.compression import FLOAT_BITS
from mpisim.wire.base import Form, Message, same
from mpisim.wire.codecs.bits import round_scales
from mpisim.wire.rotated import Rotated, RotatedForm
from mpisim.wire.signs import SignsForm


class Rotating(Compressor):
    """C(v) = R^T Q(R v) with R = H diag(e) / sqrt(D), H a Hadamard matrix and e random signs.

    D is the next power of two from d on, and v has zeros behind. Signs are shared randomness, each
    worker's own, and cost no bits. R keeps lengths and R^T R = I, so C has the constants of Q in
    dimension D; leaving out the last D - d coordinates makes no error larger.
    """

    def check(self) -> None:
        self.D = 1 << (self.d - 1).bit_length()

    def rotated(self, draw: Draw, inner: Form) -> RotatedForm:
        """The form of messages ``inner`` with the rotations of ``draw``."""
        words = dataclasses.replace(draw, purpose=f"{draw.purpose}/rotation").words(
            -(-self.D // 64)
        )
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
    with two equal entries attain it. Long vectors of normal entries have 1 - 2 / pi.

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
        signs = form.inner.pack(round_scales(scales, self.precision.wire), z)  # type: ignore[attr-defined]
        return Rotated(form, signs)

    @property
    def alpha(self) -> float | None:
        return 1 / 2 if self.scale == "least" else None

    def paper_bits(self, message: Message) -> np.ndarray:
        return same(message.form.workers, FLOAT_BITS + self.D)


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
        if inner.fitted or inner.correlated:
            raise InputError(
                f"compressor.inner.name: {inner.name!r} is not allowed; it must not be fitted to"
                " the problem, and workers must draw independently"
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
