"""The linear autoencoder on images (PermK paper, Section 5.2 and Appendix A.5).

With S_i = (1/|D_i|) sum_j a_j a_j^T + (lambda / 2) I the loss and its regulariser are one term,
f_i(D, E) = tr((D E - I) S_i (D E - I)^T), and

    grad_D f_i = 2 (D q_i - S_i E^T),   q_i = E S_i E^T,
    grad_E f_i = 2 (S_i K)^T,           K = E^T D^T D - D.

A worker's 60 images are far fewer than d_f = 784: S_i is never formed, but multiplied through the
images themselves, of which only the pixels above 0 are kept. f and its gradient come from
the second moments of all images, (d_f, d_f), whose integer sums are exact on every rank.
"""

from __future__ import annotations

from functools import cached_property
from math import isfinite, prod, sqrt
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import DTypeLike
from scipy.special import ndtri

from mpisim.core.rng import Streams
from mpisim.core.schema import require
from mpisim.problems import autoencoder_kernels as kernels
from mpisim.problems.base import Problem, problem
from mpisim.problems.data.homogeneity import Mix, Split, split
from mpisim.problems.data.images import load_pixels
from mpisim.problems.image_shards import WHITE, Shards

TOGETHER = 2048  # images whose second moments are added at a time


@problem("autoencoder")
class Autoencoder(Problem):
    """f_i(D, E) = (1/|D_i|) sum_j |D E a_j - a_j|^2 + lambda/2 |D E - I|_F^2 (Appendix A.5).

    x is D (d_f, d_e), then E (d_e, d_f), row by row. a_j are images with pixels in [0, 1]. x^0 has
    independent normal numbers of variance 2 / (d_f + d_e), as in the published code.

    data : an image set (`mpisim data list`), an idx file, or "sample", which is generated
    homogeneity : p-hat in [0, 1], see `mpisim.problems.data.homogeneity.split`
    code_size : d_e
    lambda : >= 0
    images : use so many of the images only
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

    explicit = True
    nonnegative: ClassVar[bool] = True

    def check(self) -> None:
        n, p = self.workers, self.homogeneity
        require(n is None or n >= 1, "problem.workers", n, "at least 1")
        require(0 <= p <= 1, "problem.homogeneity", p, "a number from 0 to 1")
        require(self.code_size >= 1, "problem.code_size", self.code_size, "at least 1")
        allowed = isfinite(self.lambda_) and self.lambda_ >= 0
        require(allowed, "problem.lambda", self.lambda_, "finite and at least 0")

    def load(self, n: int, first: int, count: int, seed: int, dtype: np.dtype) -> None:
        """See `Problem.load`; `InputError` where the images are absent or too few."""
        pixels, digest = load_pixels(self.data)
        used = len(pixels) if self.images is None else self.images
        allowed = f"from n + 1 = {n + 1} to the {len(pixels)} images of {self.data}"
        if self.images is None:
            require(used > n, "problem.workers", n, f"below the {used} images of {self.data}")
        require(n < used <= len(pixels), "problem.images", used, allowed)
        parts = split(len(pixels), used, n, self.homogeneity, self.mix, seed)
        self.attach(pixels, parts, first, count, seed, np.dtype(dtype))
        self.identity = f"autoencoder on {self.data} sha256:{digest}, seed = {seed}"

    def attach(
        self, pixels: np.ndarray, parts: Split, first: int, count: int, seed: int, dtype: np.dtype
    ) -> None:
        """Take the images (rows, d_f), uint8, of a block of ``count`` workers from ``first`` on."""
        self.n, self.first, self.m, self.seed, self.dtype = (
            len(parts.sizes), first, count, seed, dtype,
        )  # fmt: skip
        self.d_f, self.d_e = pixels.shape[1], self.code_size
        require(self.d_e <= self.d_f, "problem.code_size", self.d_e, f"at most d_f = {self.d_f}")
        self.shapes = ((self.d_f, self.d_e), (self.d_e, self.d_f))
        self.d = sum(map(prod, self.shapes))
        self.rows = parts.sizes[first : first + count]
        self.identical = self.n == 1 or bool(parts.common.all())
        self.weight = 1.0 if self.reduction == "sum" else 1 / self.d_f
        self.moments = self._moments(pixels, parts)
        self.moments[np.diag_indices(self.d_f)] += self.lambda_ / 2
        self.shards = Shards.of(pixels, parts, first, count, self.weight, dtype)
        self._codes: list[Codes] = []

    def _moments(self, pixels: np.ndarray, parts: Split) -> np.ndarray:
        """(1/n) sum_i (1/|D_i|) sum_j a_j a_j^T, (d_f, d_f): integers until the last line."""
        total = np.zeros((self.d_f, self.d_f))
        worker = np.repeat(np.arange(self.n), parts.sizes)
        for size in np.unique(parts.sizes):
            images = parts.images[parts.sizes[worker] == size]
            used, times = np.unique(images, return_counts=True)
            integers = np.zeros((self.d_f, self.d_f))
            for start in range(0, len(used), TOGETHER):
                some = slice(start, start + TOGETHER)
                block = pixels[used[some]].astype(np.float64)
                integers += block.T @ (block * times[some, None])
            total += integers * (self.weight / (WHITE**2 * self.n * size))
        return total

    def initial_point(self) -> np.ndarray:
        words = Streams(self.seed).raw("autoencoder start", 0, 0, 1, self.d)[0]
        normal = ndtri(((words >> np.uint64(11)) + 0.5) * 2.0**-53)
        return (sqrt(2 / (self.d_f + self.d_e)) * normal).astype(self.dtype)

    def matrices(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """D and E."""
        decoder, encoder = x[: self.d_f * self.d_e], x[self.d_f * self.d_e :]
        return decoder.reshape(self.d_f, self.d_e), encoder.reshape(self.d_e, self.d_f)

    def ridge(self, point: Point) -> tuple[np.ndarray, np.ndarray]:
        """What lambda adds to S_i b and to E S_i E^T."""
        half = self.dtype.type(self.lambda_ / 2)
        return half * point.b, half * point.encoder_gram

    # f_i of this rank's workers

    def codes(self, x: np.ndarray) -> Codes:
        """What the gradients at x have in common; that of the last two points is kept."""
        for known in self._codes:
            if np.array_equal(known.x, x):
                return known
        found = Codes(self, x)
        self._codes = [*self._codes[-1:], found]
        return found

    def losses(self, x: np.ndarray) -> np.ndarray:
        return self.codes(x).losses() + self.lambda_ / 2 * Point(self, x, np.float64).distance

    def gradients(self, x: np.ndarray) -> np.ndarray:
        out = np.empty((self.m, self.d), self.dtype)
        self.write_gradients(x, 0, out)
        return out

    def losses_and_gradients(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.losses(x), self.gradients(x)

    def write_gradients(self, x: np.ndarray, first: int, out: np.ndarray) -> None:
        self.codes(x).write_gradients(first, out)

    def coordinates(self, x: np.ndarray, ptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
        return self.codes(x).coordinates(ptr, indices)

    def batch_gradients(self, x: np.ndarray, batch: np.ndarray) -> np.ndarray:
        if batch.size and (batch.min() < 0 or (batch >= self.rows[:, None]).any()):
            raise IndexError("a batch names an image that its worker does not have")
        point, shards = Point(self, x, self.dtype), self.shards
        ridge, start_q = self.ridge(point)
        out = np.empty((self.m, self.d), self.dtype)
        share = self.dtype.type(self.weight / max(batch.shape[1], 1))
        kernels.batch_gradients(
            shards.store, shards.levels, np.ascontiguousarray(batch), share, point.b,
            start_q, point.decoder, ridge, shards.slots, out,
        )  # fmt: skip
        return out

    # f itself

    def whole(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        point = Point(self, x, np.float64)
        decoder, times = point.decoder, kernels.product(self.moments, point.b)
        s_e, s_k = times[:, : self.d_e], times[:, self.d_e :]
        q = kernels.product(point.encoder, s_e.copy())
        f = np.sum(point.gram * q) - 2 * np.sum(decoder * s_e) + np.trace(self.moments)
        first = kernels.product(decoder, q) - s_e
        return float(f), 2 * np.concatenate([first.ravel(), s_k.T.ravel()])

    def minimum(self) -> tuple[np.ndarray, float]:
        """Principal components: D = E^T = the eigenvectors of (1/n) sum S_i with the largest
        eigenvalues (Eckart and Young). D T, T^-1 E are minimisers, too."""
        largest = np.linalg.eigh(self.moments)[1][:, : -self.d_e - 1 : -1]
        x = np.concatenate([largest.ravel(), largest.T.ravel()])
        return x, self.whole(x)[0]


class Point:
    """What depends on x = (D, E) alone: D, E, D^T D, E E^T, b = [E^T, K]."""

    def __init__(self, problem: Autoencoder, x: np.ndarray, dtype: DTypeLike):
        self.x = x.astype(dtype)
        self.decoder, self.encoder = problem.matrices(self.x)
        transposed = np.ascontiguousarray(self.encoder.T)
        self.gram = kernels.product(np.ascontiguousarray(self.decoder.T), self.decoder)
        self.encoder_gram = kernels.product(self.encoder, transposed)
        k = kernels.product(transposed, self.gram) - self.decoder
        self.b = np.hstack([transposed, k])

    @property
    def distance(self) -> float:
        """|D E - I|_F^2."""
        both = np.sum(self.gram * self.encoder_gram) - 2 * np.sum(self.decoder * self.encoder.T)
        return float(both + len(self.decoder))


class Codes(Point):
    """The codes [E a, K^T a] of all images of the rank at a point, and q_i of all shards."""

    def __init__(self, problem: Autoencoder, x: np.ndarray):
        super().__init__(problem, x, problem.dtype)
        self.ridge, self.start_q = problem.ridge(self)
        self.shards = shards = problem.shards
        self.codes = np.empty((len(shards.weights), self.b.shape[1]), problem.dtype)
        self.q = np.empty((len(shards.store[0]), *self.start_q.shape), problem.dtype)
        kernels.encode_all(
            shards.store, shards.levels, shards.weights, self.b, self.start_q, self.codes, self.q
        )
        self._known = (shards.store, shards.levels, shards.weights, self.codes, self.q,
                       self.decoder, self.ridge)  # fmt: skip

    def losses(self) -> np.ndarray:
        """f_i(x) without the regulariser, shape (m,), float64."""
        shards = self.shards
        out = np.empty(len(shards.slots))
        kernels.losses(
            shards.store[3], shards.norms, shards.weights, self.codes, self.gram, shards.slots, out
        )
        return out

    @cached_property
    def common(self) -> np.ndarray:
        """The gradient of the workers that have D_0, (d,); empty where they are not several."""
        out = np.empty((int(self.shards.shared), self.x.size), self.x.dtype)
        slots = np.zeros(len(out), np.int64)
        kernels.write_gradients(*self._known, slots, np.empty(0, self.x.dtype), out)
        return out.ravel()

    def write_gradients(self, first: int, out: np.ndarray) -> None:
        """See `Problem.write_gradients`."""
        slots = self.shards.slots[first : first + len(out)]
        kernels.write_gradients(*self._known, slots, self.common, out)

    def coordinates(self, ptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
        """See `Problem.coordinates`."""
        out = np.empty(indices.size, self.x.dtype)
        kernels.write_coordinates(*self._known, self.shards.slots, ptr, indices, out)
        return out
