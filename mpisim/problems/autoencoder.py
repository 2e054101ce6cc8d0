"""The linear autoencoder on images (PermK paper, Section 5.2 and Appendix A.5).

With S_i = (1/|D_i|) sum_j a_j a_j^T + (lambda / 2) I the loss and its regulariser are one term,
f_i(D, E) = tr((D E - I) S_i (D E - I)^T), and

    grad_D f_i = 2 (D q_i - S_i E^T),   q_i = E S_i E^T,
    grad_E f_i = 2 (S_i K)^T,           K = E^T D^T D - D.

A worker's 60 images are far fewer than d_f = 784, so S_i is never formed: products with it go
through the images, of which only the pixels above 0 are stored. f and its gradient come from
the second moments of all images, (d_f, d_f), whose integer sums are exact on every rank.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, prod, sqrt
from typing import Literal

import numpy as np

from mpisim.core.lazy_rows import LazyRows
from mpisim.core.machine import VECTORS, require_memory
from mpisim.core.numerics.eigen import eigh
from mpisim.core.numerics.select import block_size
from mpisim.core.numerics.sums import product
from mpisim.core.rng import standard_normals
from mpisim.core.schema import require
from mpisim.problems import autoencoder_gradients as gradients
from mpisim.problems.autoencoder_codes import WHITE, Codes, ImageShards, Parameters
from mpisim.problems.base import problem
from mpisim.problems.data.arrange import ImageSplit, Mix, split_images
from mpisim.problems.data.content import load_pixels
from mpisim.problems.explicit import ExplicitProblem, LazyGradients
from mpisim.problems.points import each

BLOCK = 2048  # images whose second moments are added at a time


@problem("autoencoder", "linear autoencoder")
class Autoencoder(ExplicitProblem, rows_of_points=True):
    """f_i(D, E) = (1/|D_i|) sum_j |D E a_j - a_j|^2 + lambda/2 |D E - I|_F^2 (Appendix A.5).

    x is D (d_f, d_e), then E (d_e, d_f), each row by row. a_j are images with pixels in [0, 1].
    x^0 has independent normal entries of variance 2 / (d_f + d_e), as in the published code.

    data : an image set (`mpisim data list`), an idx file, or "sample", which is generated
    homogeneity : p-hat in [0, 1], see `mpisim.problems.data.arrange.split_images`
    code_size : d_e
    lambda : >= 0
    images : how many of the images to use; all by default
    mix : "samples" mixes D_0 into the shards image by image, as in the published code
    reduction : "mean" divides the loss, not the regulariser, by d_f, as in the published code
    """

    data: str = "mnist"
    workers: int | None = None
    homogeneity: float = 0.0
    code_size: int = 16
    lambda_: float = 0.0
    images: int | None = None
    mix: Mix = "workers"
    reduction: Literal["sum", "mean"] = "sum"

    nonnegative = True

    def check(self) -> None:
        p, lambda_ = self.homogeneity, self.lambda_
        require(0 <= p <= 1, "problem.homogeneity", p, "a number from 0 to 1")
        require(self.code_size >= 1, "problem.code_size", self.code_size, "at least 1")
        require(0 <= lambda_ < inf, "problem.lambda", lambda_, "finite and at least 0")

    def load(self, n: int, first: int, count: int, seed: int, dtype: np.dtype) -> None:
        """See `Problem.load`; `InputError` if the images are missing or too few."""
        pixels, digest = load_pixels(self.data)
        used = len(pixels) if self.images is None else self.images
        allowed = f"from n + 1 = {n + 1} to the {len(pixels)} images of {self.data}"
        if self.images is None:
            require(used > n, "problem.workers", n, f"below the {used} images of {self.data}")
        require(n < used <= len(pixels), "problem.images", used, allowed)
        parts = split_images(len(pixels), used, n, self.homogeneity, self.mix, seed)
        floats = 2 * VECTORS * pixels.shape[1] * self.code_size
        require_memory(floats, "problem.code_size", self.code_size)
        self.attach(pixels, parts, first, count, dtype)
        self.identity = f"autoencoder on {self.data} sha256:{digest}, seed = {seed}"

    def digests(self) -> list[str]:
        return [load_pixels(self.data)[1]]

    def attach(
        self, pixels: np.ndarray, parts: ImageSplit, first: int, count: int, dtype: np.dtype
    ) -> None:
        """Take the images (rows, d_f), uint8, of workers first, ..., first + count - 1."""
        self.n, self.first, self.m = len(parts.sizes), first, count
        self.dtype = np.dtype(dtype)
        self.d_f, self.d_e = pixels.shape[1], self.code_size
        require(self.d_e <= self.d_f, "problem.code_size", self.d_e, f"at most d_f = {self.d_f}")
        self.shapes = ((self.d_f, self.d_e), (self.d_e, self.d_f))
        self.d = sum(map(prod, self.shapes))
        self.rows = parts.sizes[first : first + count]
        self.identical = self.n == 1 or bool(parts.common.all())
        self.weight = 1.0 if self.reduction == "sum" else 1 / self.d_f
        self.moments = self._moments(pixels, parts)
        self.moments[np.diag_indices(self.d_f)] += self.lambda_ / 2
        self.shards = ImageShards.of(pixels, parts, first, count, self.weight, self.dtype)
        self._codes: list[Codes] = []

    def _moments(self, pixels: np.ndarray, parts: ImageSplit) -> np.ndarray:
        """(1/n) sum_i (1/|D_i|) sum_j a_j a_j^T, (d_f, d_f); sums of integers, scaled last."""
        total = np.zeros((self.d_f, self.d_f))
        worker = np.repeat(np.arange(self.n), parts.sizes)
        for size in np.unique(parts.sizes):
            images = parts.images[parts.sizes[worker] == size]
            used, times = np.unique(images, return_counts=True)
            integers = np.zeros((self.d_f, self.d_f))
            for start in range(0, len(used), BLOCK):
                some = slice(start, start + BLOCK)
                block = pixels[used[some]].astype(np.float64)
                integers += block.T @ (block * times[some, None])
            total += integers * (self.weight / (WHITE**2 * self.n * size))
        return total

    def initial_point(self) -> np.ndarray:
        normal = standard_normals(self.seed, "autoencoder start", 1, self.d)[0]
        return (sqrt(2 / (self.d_f + self.d_e)) * normal).astype(self.dtype)

    # f_i of this rank's workers

    def codes(self, x: np.ndarray) -> Codes:
        """What the gradients at x have in common; kept for the last two points."""
        for codes in self._codes:
            if np.array_equal(codes.x, x):
                return codes
        codes = Codes(x, self.shards, self.lambda_)
        self._codes = [*self._codes[-1:], codes]
        return codes

    def parts(self, count: int, *points: np.ndarray) -> Iterator[tuple]:
        """Some of ``count`` workers with their points (d,): all at one, or one at a time."""
        if all(x.ndim == 1 for x in points):
            yield slice(0, count), *points
            return
        for i, alone in enumerate(zip(*(each(x, count) for x in points), strict=True)):
            yield slice(i, i + 1), *alone

    def losses(self, x: np.ndarray) -> np.ndarray:
        out, shards = np.empty(self.m), self.shards
        for some, point in self.parts(self.m, x):
            codes, slots = self.codes(point), shards.slots[some]
            images = shards.store[3], shards.norms, shards.weights
            gradients.losses(*images, codes.of(slots)[3], codes.gram, slots, out[some])
            distance = Parameters(point, self.d_f, np.float64).distance
            out[some] += self.lambda_ / 2 * distance
        return out

    def lazy_gradients(self, x: np.ndarray, *, members: np.ndarray | None = None) -> ImageGradients:
        return ImageGradients(self, x, members)

    def gradients(self, x: np.ndarray, *, members: np.ndarray | None = None) -> np.ndarray:
        return self.lazy_gradients(x, members=members).dense()

    def batch_gradients(
        self, x: np.ndarray, batch: np.ndarray, *, members: np.ndarray | None = None
    ) -> np.ndarray:
        members = np.arange(self.m) if members is None else members
        if batch.size and (batch.min() < 0 or (batch >= self.rows[members, None]).any()):
            raise IndexError("a batch names an image that its worker does not have")
        shards, batch = self.shards, np.ascontiguousarray(batch)
        weight = self.dtype.type(self.weight / max(batch.shape[1], 1))
        out, slots = np.empty((len(members), self.d), self.dtype), shards.slots[members]
        for some, at in self.parts(len(members), x):
            point = Parameters(at, self.d_f, self.dtype)
            ridge, start_q = point.ridge(self.lambda_)
            gradients.batch_gradients(
                shards.store, shards.levels, batch[some], weight, point.b, start_q,
                point.decoder, ridge, slots[some], out[some],
            )  # fmt: skip
        return out

    # f itself

    def loss_and_gradient(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        point = Parameters(x, self.d_f, np.float64)
        decoder, times = point.decoder, product(self.moments, point.b)
        s_e, s_k = times[:, : self.d_e], times[:, self.d_e :]
        q = product(point.encoder, s_e.copy())
        f = np.sum(point.gram * q) - 2 * np.sum(decoder * s_e) + np.trace(self.moments)
        first = product(decoder, q) - s_e
        return float(f), 2 * np.concatenate([first.ravel(), s_k.T.ravel()])

    def minimum(self) -> tuple[np.ndarray, float]:
        """D = E^T = the leading d_e eigenvectors of (1/n) sum S_i: principal components.

        By Eckart and Young. D T and T^-1 E are minimisers too, for every invertible T.
        """
        largest = eigh(self.moments)[1][:, : -self.d_e - 1 : -1]
        x = np.concatenate([largest.ravel(), largest.T.ravel()])
        return x, self.loss_and_gradient(x)[0]


class ImageGradients(LazyGradients):
    """The gradients of an `Autoencoder`."""

    def __init__(self, problem: Autoencoder, x: np.ndarray, members: np.ndarray | None = None):
        super().__init__(problem, x, members)
        self.slots = problem.shards.slots[self.workers]

    def fill(self, first: int, out: np.ndarray) -> None:
        p, rows = self.problem, slice(first, first + len(out))
        slots = self.slots[rows]
        for some, point in p.parts(len(out), self.x if self.one_point else self.x[rows]):
            codes = p.codes(point)
            gradients.write_gradients(codes.of(slots[some]), codes.common, slots[some], out[some])

    def coordinates(
        self, ptr: np.ndarray, indices: np.ndarray, before: np.ndarray | None
    ) -> np.ndarray:
        p, out = self.problem, np.empty(indices.size, self.dtype)
        points = (self.x,) if before is None else (before, self.x)
        for some, *at in p.parts(len(self.slots), *points):
            slots = self.slots[some]
            *earlier, at_point = (p.codes(point).of(slots) for point in at)
            less = earlier[0] if earlier else None
            gradients.write_coordinates(at_point, less, slots, ptr[some.start :], indices, out)
        return out

    def largest_less(self, other: LazyRows | np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        p, (m, d) = self.problem, self.shape
        size = block_size(d, k)
        if size == 0 or not self.one_point or not isinstance(other, np.ndarray):
            return super().largest_less(other, k)
        codes, slots = p.codes(self.x), self.slots
        indices, values = np.empty((m, k), np.int64), np.empty((m, k), self.dtype)
        at_point = codes.of(slots), codes.common
        gradients.largest_differences(*at_point, slots, other, size, indices, values)
        return indices, values
