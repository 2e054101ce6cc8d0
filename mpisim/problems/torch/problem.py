"""The problem ``torch``: f_i is the mean loss of a PyTorch model over a worker's samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mpisim.core.errors import InputError
from mpisim.core.rng import Draw, Streams
from mpisim.core.schema import choose, require
from mpisim.problems.base import Problem, problem
from mpisim.problems.data.arrange import REMAINDERS, row_ranges, shuffle
from mpisim.problems.torch import samples

if TYPE_CHECKING:
    from mpisim.problems.torch.network import Network

PAD = 4  # pixels that augmentation moves an image by, at most


@problem("torch")
class Torch(Problem):
    """f_i(x) = mean over the worker's samples of the cross-entropy of a model with parameters x.

    model, data : names, of `models` and `samples` in this folder, or of a plugin.
    samples : the first so many training samples, and so many test samples at most; 0: all.
    width : of the model's layers; 1 is the paper's.
    pool : images are averaged over squares of pool x pixels.
    chunk : so many samples go through the model together, at most.
    augment : minibatches are moved by up to 4 pixels and mirrored at random.
    mixed : forward passes in bfloat16.
    device : "auto" takes an accelerator where there is one.

    Samples that go through together share batch norm's statistics, so f_i is what a model in
    training mode gives for the worker's samples in their order, chunk by chunk: a function of x
    alone. On the test set, of which every worker judges its own equal share, the statistics are
    the means over the worker's training chunks at the same x.
    """

    model: str = "resnet18"
    data: str = "cifar10"
    samples: int = 0
    workers: int | None = None
    split: Literal["contiguous", "shuffled"] = "contiguous"
    remainder: str = "drop"
    width: float = 1.0
    pool: int = 1
    chunk: int = 128
    augment: bool = False
    mixed: bool = False
    device: Literal["auto", "cpu", "accelerator"] = "auto"

    tested = True
    nonnegative = True

    def check(self) -> None:
        require(self.workers is None or self.workers >= 1, "problem.workers", self.workers, ">= 1")
        require(self.remainder in REMAINDERS, "problem.remainder", self.remainder, str(REMAINDERS))
        require(self.samples >= 0, "problem.samples", self.samples, "an integer >= 0")
        require(self.width > 0, "problem.width", self.width, "a number > 0")
        require(self.pool >= 1, "problem.pool", self.pool, "an integer >= 1")
        require(self.chunk >= 2, "problem.chunk", self.chunk, "an integer >= 2")

    def load(self, n: int, first: int, count: int, seed: int, dtype: np.dtype) -> None:
        whole = samples.first(samples.load(self.data), self.samples)
        self.n, self.first, self.m, self.seed, self.dtype = n, first, count, seed, np.dtype(dtype)
        self.streams, self.classes = Streams(seed), whole.classes
        self.mean, self.scale = _normalisation(self._pooled(whole.features), self.dtype)
        starts, stops = row_ranges(len(whole.labels), n, self.split, self.remainder)
        order = np.arange(len(whole.labels))
        if self.split == "shuffled":
            order = shuffle(len(order), seed)
        mine = [order[starts[i] : stops[i]] for i in range(first, first + count)]
        self.rows = np.array([len(rows) for rows in mine], np.int64)
        self.shards = [(self._pooled(whole.features[r]), whole.labels[r]) for r in mine]
        self.tests = len(whole.test_labels)
        shares = [
            slice(self.tests * i // n, self.tests * (i + 1) // n)
            for i in range(first, first + count)
        ]
        self.shares = [(self._pooled(whole.test_features[s]), whole.test_labels[s]) for s in shares]
        self.network = self._network(self._pooled(whole.features[:1]).shape[1:])
        self.d, self.identical = self.network.d, n == 1
        self.start = self.network.point()
        self.evaluated: np.ndarray | None = None
        where = self.network.device.type
        self.identity = f"{self.model} on {self.data} sha256:{whole.sha256} ({where})"

    def _network(self, shape: tuple[int, ...]) -> Network:
        try:
            import torch

            from mpisim.problems.torch.models import MODELS
            from mpisim.problems.torch.network import Network, device_of
        except ImportError:
            raise InputError(
                'problem.name: "torch" needs PyTorch: pip install "mpisim[torch]"'
            ) from None
        make = choose(MODELS, self.model, "problem.model")
        try:
            device = device_of(self.device, self.first)
        except RuntimeError as error:
            raise InputError(f"problem.device: {error}") from None
        with torch.random.fork_rng(devices=[]):  # x^0: PyTorch's own, from an addressed seed
            torch.manual_seed(int(self.streams.raw("initial point", 0, 0, 1, 1)[0, 0]) >> 1)
            model: Any = make(shape, self.classes, self.width)
        return Network(model.to(getattr(torch, self.dtype.name)), device, self.mixed)

    def initial_point(self) -> np.ndarray:
        """The model's own random start, by ``run.seed``; the same on every rank."""
        return self.start.copy()

    def losses_and_gradients(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        losses, gradients = np.empty(self.m), np.empty((self.m, self.d), self.dtype)
        self.right, self.statistics = np.empty(self.m), []
        self.network.to_point(x)
        for i, (features, labels) in enumerate(self.shards):
            values = self._values(features)
            losses[i], self.right[i], gradients[i] = self.network.gradient(
                values, labels, self.chunk, 0
            )
            self.statistics.append(self.network.statistics())
        self.evaluated = x
        return losses, gradients

    def batch_gradients(self, x: np.ndarray, batch: np.ndarray) -> np.ndarray:
        require(batch.shape[1] >= 2, "method.batch", batch.shape[1], "an integer >= 2")
        gradients = np.empty((self.m, self.d), self.dtype)
        seeds = self._draw("dropout").words(1)[:, 0] >> np.uint64(1)
        moves = self._draw("augment").uniforms(3 * batch.shape[1]) if self.augment else None
        self.network.to_point(x)
        for i, (features, labels) in enumerate(self.shards):
            chosen = features[batch[i]]
            if moves is not None:
                chosen = augmented(chosen, moves[i].reshape(-1, 3))
            gradients[i] = self.network.gradient(
                self._values(chosen), labels[batch[i]], self.chunk, int(seeds[i])
            )[2]
        return gradients

    def test(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.evaluated is not x:
            self.losses_and_gradients(x)
        shares, gradients = np.empty((self.m, 3)), np.empty((self.m, self.d), self.dtype)
        self.network.to_point(x)
        for i, (features, labels) in enumerate(self.shares):
            loss, right, gradients[i] = self.network.test(
                self.statistics[i], self._values(features), labels, self.chunk
            )
            share = len(labels) / self.tests
            shares[i] = self.right[i] / self.rows[i] / self.n, loss * share, right / self.tests
            gradients[i] *= self.dtype.type(share)
        return shares, gradients

    def _draw(self, purpose: str) -> Draw:
        return Draw(self.streams, purpose, self.round, self.first, self.m)

    def _pooled(self, features: np.ndarray) -> np.ndarray:
        """Images averaged over squares of ``pool`` x ``pool`` pixels, rounded."""
        p = self.pool
        if features.dtype != np.uint8 or p == 1:
            return features
        size = features.shape[-1] // p * p
        blocks = features[..., :size, :size].reshape(*features.shape[:2], size // p, p, -1, p)
        return np.rint(blocks.mean(axis=(3, 5))).astype(np.uint8)

    def _values(self, features: np.ndarray) -> np.ndarray:
        """What the model takes: images with mean 0 and variance 1 in each channel."""
        if features.dtype != np.uint8:
            return features.astype(self.dtype, copy=False)
        return (features - self.mean) * self.scale


def _normalisation(features: np.ndarray, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Mean, and inverse of the standard deviation, of each channel, shape (channels, 1, 1)."""
    if features.dtype != np.uint8:
        return np.zeros(1, dtype), np.ones(1, dtype)
    counts = [
        np.bincount(features[:, c].reshape(-1), minlength=256) for c in range(features.shape[1])
    ]
    share = np.array(counts) / np.sum(counts, axis=1)[:, None]
    mean = share @ np.arange(256.0)
    deviation = np.sqrt(share @ np.arange(256.0) ** 2 - mean**2)
    shape = (-1, 1, 1)
    return mean.reshape(shape).astype(dtype), (1 / deviation).reshape(shape).astype(dtype)


def augmented(images: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """Images (b, c, h, w) cut from a black border of 4 pixels, and mirrored, at random.

    uniforms (b, 3): row, column, mirror; the published CD-Adam code's RandomCrop and
    RandomHorizontalFlip.
    """
    b, c, h, w = images.shape
    padded = np.zeros((b, c, h + 2 * PAD, w + 2 * PAD), images.dtype)
    padded[:, :, PAD : PAD + h, PAD : PAD + w] = images
    top, left = (uniforms[:, :2] * (2 * PAD + 1)).astype(np.int64).T
    rows, columns = top[:, None] + np.arange(h), left[:, None] + np.arange(w)
    columns = np.where(uniforms[:, 2:] < 0.5, columns[:, ::-1], columns)
    cut = padded[np.arange(b)[:, None, None], :, rows[:, :, None], columns[:, None, :]]
    return cut.transpose(0, 3, 1, 2)
