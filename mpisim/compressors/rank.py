"""Rank-K: approximate matrices by matrices of low rank (PermK paper, Appendix G.1; FedNL)."""

from __future__ import annotations

from math import isqrt
from typing import Literal

import numpy as np
from numba import njit

from mpisim.compressors.base import Compressor, compressor
from mpisim.core.errors import InputError
from mpisim.core.lazy_rows import LazyRows, row_blocks
from mpisim.core.numerics.eigen import eigh, triangle_size, unpacked
from mpisim.core.numerics.sums import add_gram, product, rounded
from mpisim.core.protocols import Objective, Uplink
from mpisim.core.rng import Draw
from mpisim.core.schema import require
from mpisim.theory.compression import FLOAT_BITS
from mpisim.wire.base import Message, same
from mpisim.wire.factors import Factors, FactorsForm, Shapes, Spectral, SpectralForm, is_sent_itself

SHOWN = 4  # shapes in a message


@compressor("rank-k", "RankK", {"k": "K"})
class RankK(Compressor):
    """The best approximation of each matrix by one of rank k, sent as its two factors.

    A matrix a x b with fewer values than its factors, k (a + b) > a b, is sent itself, without
    loss: a message has min(k (a + b), a b) values for each.

    |C(X) - X|_F^2 is the sum of the squared singular values from the (k+1)-th on. So alpha is
    k / min(a, b) for an a x b matrix (PermK paper, G.1, by FedNL's A.3.2), with equality if all
    singular values are equal. It is 1 for a matrix that is sent itself. For several matrices it is
    the least of them. Nothing is drawn or shared by the workers: C is biased, and A and B are not
    defined. zeta = d, as the product of the factors may be dense.

    The matrices are those of the problem's x (of a network, its tensors) or, if the problem has
    none, x in the shape a x b = d closest to a square. Values are charged with 32 bits each, as the
    paper does not say. A message decodes to the product of the factors as rounded on the wire.

    codec : "paper", those values, or "entropy", their exponents in an entropy code:
        `mpisim.wire.codecs.symbols`
    """

    k: int
    codec: Literal["paper", "entropy"] = "paper"
    lazy = True

    def check(self) -> None:
        self.shapes: Shapes = (nearly_square(self.d),)
        require(self.k >= 1, "compressor.k", self.k, "at least 1")

    def prepare(self, star: Uplink, problem: Objective) -> None:
        self.shapes = problem.shapes or self.shapes
        full = max(min(shape) for shape in self.shapes)
        named = ", ".join(f"{a} x {b}" for a, b in self.shapes[:SHOWN])
        named += f" and {len(self.shapes) - SHOWN} more" if len(self.shapes) > SHOWN else ""
        require(self.k <= full, "compressor.k", self.k, f"from 1 to {full} for x as {named}")

    def form(self, draw: Draw) -> FactorsForm:
        return FactorsForm(self.d, draw.workers, self.precision, self.shapes, self.k, self.codec)

    def compress(self, v: np.ndarray | LazyRows, draw: Draw) -> Factors:
        form = self.form(draw)
        values = np.empty(form.shape, self.precision.wire)
        for which, rows in row_blocks(v):
            start = 0
            for (a, b), parts in zip(self.shapes, form.parts(values[which]), strict=True):
                matrices = rows[:, start : start + a * b].reshape(-1, a, b).astype(np.float64)
                start += a * b
                with np.errstate(over="ignore"):
                    if len(parts) == 1:
                        parts[0][:] = matrices
                        continue
                    p, q = parts
                    if a >= b:
                        p[:], q[:] = factors(matrices, p.shape[2])
                    else:
                        turned = np.ascontiguousarray(matrices.transpose(0, 2, 1))
                        q[:], p[:] = factors(turned, p.shape[2])
        return Factors(form, values)

    @property
    def alpha(self) -> float:
        return min(
            1.0 if is_sent_itself(self.k, shape) else self.k / min(shape) for shape in self.shapes
        )

    def paper_bits(self, message: Message) -> np.ndarray:
        assert isinstance(message.form, FactorsForm)
        return same(message.form.workers, FLOAT_BITS * message.form.shape[1])


@compressor("symmetric-rank-k", "symmetric RankK", {"k": "K"})
class SymmetricRankK(Compressor):
    """The best approximation of a symmetric matrix, which v is as a triangle, by one of rank k.

    Such are FedNL's Hessians: v has the d = D (D + 1) / 2 numbers of `core.numerics.eigen`. The
    message is the k eigenvalues largest in absolute value and their eigenvectors, k (D + 1)
    values, and decodes to what those are as rounded on the wire. |C(X) - X|_F^2 is the sum of the
    squares of the other eigenvalues, so that alpha = k / D. C is biased.

    k : the rank, from 1 to D
    codec : as of `rank-k`, for these values
    """

    k: int
    codec: Literal["paper", "entropy"] = "paper"

    def check(self) -> None:
        self.D = (isqrt(8 * self.d + 1) - 1) // 2
        if triangle_size(self.D) != self.d:
            what = f"{self.name!r} compresses triangles of D (D + 1) / 2 numbers, not {self.d}"
            raise InputError(f"compressor.name: {what}")
        require(1 <= self.k <= self.D, "compressor.k", self.k, f"from 1 to D = {self.D}")

    def form(self, draw: Draw) -> SpectralForm:
        return SpectralForm(self.d, draw.workers, self.precision, self.D, self.k, self.codec)

    def compress(self, v: np.ndarray, draw: Draw) -> Spectral:
        form = self.form(draw)
        pairs = np.empty((len(v), self.k, self.D + 1))
        for i, row in enumerate(v):
            values, vectors = eigh(unpacked(row.astype(np.float64), self.D))
            order = np.argsort(-np.abs(values), kind="stable")[: self.k]
            pairs[i, :, 0], pairs[i, :, 1:] = values[order], vectors.T[order]
        return Spectral(form, rounded(pairs, self.precision.wire))

    @property
    def alpha(self) -> float:
        return self.k / self.D

    def paper_bits(self, message: Message) -> np.ndarray:
        return same(message.form.workers, FLOAT_BITS * self.k * (self.D + 1))


@njit(cache=True)
def factors(matrices, r):
    """X V (m, a, r) and V (m, b, r), V the first r right singular vectors of each X (a, b), a >= b.

    V are eigenvectors of X^T X. A matrix that is not finite gives NaN.
    """
    m, a, b = matrices.shape
    left, right = np.empty((m, a, r)), np.empty((m, b, r))
    gram, ones = np.empty((b, b)), np.ones(a)
    for i in range(m):
        largest = np.abs(matrices[i]).max()
        scale = largest if largest > 0 else 1.0  # its squares do not overflow
        scaled = matrices[i] / scale
        gram[:] = 0
        add_gram(scaled, ones, 0, gram)
        vectors = eigh(gram)[1]
        right[i] = vectors[:, b - r :][:, ::-1]
        left[i] = product(scaled, right[i])
        left[i] *= scale
    return left, right


def nearly_square(d: int) -> tuple[int, int]:
    """(a, b) with a b = d, a <= b, and a as large as possible."""
    a = next(a for a in range(isqrt(d), 0, -1) if d % a == 0)
    return a, d // a
