"""QUIC-FL: unbiased rounding to a few values after a rotation; what is beyond them is sent too."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from statistics import NormalDist

import numpy as np

from mpisim.compressors.base import compressor
from mpisim.compressors.norms import block_norms
from mpisim.compressors.rotation import NORMALS, PointsCodec, Rotating, shares_of
from mpisim.core.numerics.sums import rounded
from mpisim.core.rng import Draw
from mpisim.core.schema import require
from mpisim.theory.compression import FLOAT_BITS
from mpisim.wire.base import Message
from mpisim.wire.codecs.bits import round_scales
from mpisim.wire.composed import Rotated, RotatedForm, Sum, SumForm
from mpisim.wire.fewer import Fewer, FewerForm
from mpisim.wire.signs import Points, PointsForm


@compressor("quic-fl", "QUIC-FL", {"bits": "b"})
class QuicFL(Rotating):
    """C(v) = S R^T c, c_j: u_j rounded at random to one of 2^b values, u = R v / S: `Rotating`.

    S = |v| / sqrt(D), so that the u_j are nearly normal. The values are between -t and t. Where
    |u_j| > t, which is so for at most D / t^2 of them, an index and what is beyond +-t follow, and
    these coordinates are exact.

    bits : b, from 1 to 6
    p : the probability of |u_j| > t for a normal u_j, from 1e-12 to 1/4
    codec : as of `eden`, for the values, and as of `topk`, for the indices of what is exact

    Rounding is unbiased for every rotation, so E C(v) = v for every v. The values have the least
    mean variance D_b for normal u_j, which long vectors have nearly. For any u with |u|^2 = D the
    mean variance is at most omega. With p = 1/512 and b = 1, ..., 4

    D_b   = 8.597, 0.573, 0.0926, 0.0195
    omega = 9.593, 0.844, 0.161, 0.0411

    The scheme and p are those of QUIC-FL's published code (Ben Basat et al., 2022, arXiv
    2205.13341). The paper's text was not read, and omega is derived here. This differs from the
    code: there the values and their probabilities also depend on shared random numbers, and a
    solver makes the tables; here one condition of optimality is solved.
    """

    bits: int = 2
    p: float = 1 / 512
    codec: PointsCodec = "paper"

    def check(self) -> None:
        super().check()
        require(1 <= self.bits <= 6, "compressor.bits", self.bits, "an integer from 1 to 6")
        allowed = "a number from 1e-12 to 1/4"  # below, 1 - p / 2 is rounded to 1
        require(1e-12 <= self.p <= 0.25, "compressor.p", self.p, allowed)
        self.values = q = unbiased_points(self.bits, self.p)
        self.most = max(1, int(self.D / q[-1] ** 2))
        self._omega = largest_variance(q)
        if self.codec == "entropy":
            taken = [np.interp(NORMALS, q, one) for one in np.eye(q.size)]
            self.shares = shares_of(np.array(taken).T)

    def form(self, draw: Draw) -> RotatedForm:
        block = draw.workers, self.precision
        points = PointsForm(self.D, *block, self.values, self.shares)
        exact = FewerForm(self.D, *block, self.most, self.codec)
        return self.rotated(draw, SumForm(*block, (points, exact)))

    def compress(self, v: np.ndarray, draw: Draw) -> Rotated:
        form, q, t = self.form(draw), self.values, self.values[-1]
        z = form.rotate(v)
        lengths = block_norms(z, np.array([0, self.D]), True) / self.D**0.5
        scales = round_scales(lengths, self.precision.wire, up=True)
        S = np.where(scales > 0, scales.astype(np.float64), np.inf)
        with np.errstate(invalid="ignore"):
            u = z / S
            inside = np.clip(u, -t, t)
            low = np.clip(np.searchsorted(q, inside, "right") - 1, 0, q.size - 2)
            up = draw.uniforms(self.D) * (q[low + 1] - q[low]) < inside - q[low]
            beyond = np.abs(u) > t
        rows, indices = (np.ascontiguousarray(axis) for axis in np.nonzero(beyond))
        ptr, rest = np.searchsorted(rows, np.arange(len(v) + 1)), S[rows, 0] * (u - inside)[beyond]
        points, exact = form.inner.forms  # type: ignore[attr-defined]
        fewer = Fewer(exact, ptr, indices, rounded(rest, self.precision.wire))
        return Rotated(form, Sum(form.inner, (Points(points, scales, low + up), fewer)))  # type: ignore[arg-type]

    @property
    def omega(self) -> float:
        return self._omega

    def paper_bits(self, message: Message) -> np.ndarray:
        """A float and an index for each exact coordinate."""
        exact = np.diff(message.inner.parts[1].ptr)  # type: ignore[attr-defined]
        index = self.D.bit_length() - 1
        return FLOAT_BITS + self.bits * self.D + exact * (FLOAT_BITS + index)


@cache
def unbiased_points(b: int, p: float) -> np.ndarray:
    """2^b values q, symmetric, of the least variance for normal variables, multiples of 2^-20.

    The largest is t, which a normal variable exceeds in size with probability p. Between a < c < b
    q = c is best if E (z - a)^+ below c is E (b - z)^+ above c. So the least positive value
    determines the others, and is found by bisection.
    """
    normal = NormalDist()
    t = normal.inv_cdf(1 - p / 2)

    def next_point(a: float, c: float) -> float:
        left = normal.pdf(a) - normal.pdf(c) - a * (normal.cdf(c) - normal.cdf(a))

        def right(z: float) -> float:
            return z * (normal.cdf(z) - normal.cdf(c)) + normal.pdf(z) - normal.pdf(c)

        return root(lambda z: right(z) - left, c, c + t)

    def points(first: float) -> list[float]:
        q = [-first, first]
        while len(q) <= 2 ** (b - 1) and q[-1] < t:
            q.append(next_point(*q[-2:]))
        return q[1:]

    first = root(lambda q: points(q)[-1] - t, 0.0, t)
    positive = np.round(np.array([*points(first)[:-1], t]) * 2**20) / 2**20
    return np.concatenate([-positive[::-1], positive])


def root(increasing: Callable[[float], float], low: float, high: float) -> float:
    """Where it changes its sign in [low, high], by bisection; an end if it does not."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if increasing(middle) < 0 else (low, middle)
    return high


def largest_variance(q: np.ndarray) -> float:
    """The largest E (u - a) (b - u) over all random u with E u^2 <= 1, q having the neighbours a, b
    of u; beyond q it is 0.

    It is the least of the bounds s + max_u ((u - a) (b - u) - s u^2), s >= 0.
    """
    a, b = q[:-1], q[1:]

    def largest(s: float) -> tuple[float, float]:
        u = np.clip((a + b) / (2 * (1 + s)), a, b)
        values = (u - a) * (b - u) - s * u**2
        return float(values.max()), float(u[values.argmax()])

    s = root(lambda s: 1 - largest(s)[1] ** 2, 0.0, float(q[-1]) ** 2)
    return s + largest(s)[0]
