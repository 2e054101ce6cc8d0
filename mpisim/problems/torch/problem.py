"""The problem ``torch``: f_i is the mean loss of a PyTorch model over a worker's samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mpisim.core.errors import InputError
from mpisim.core.rng import Draw, Streams
from mpisim.core.schema import choose, require
from mpisim.problems.base import ProblemWithTestSet, problem
from mpisim.problems.data.arrange import Remainder, row_ranges, shuffle
from mpisim.problems.torch import samples
from mpisim.problems.torch.transforms import augmented, normalisation, pooled

if TYPE_CHECKING:  # importing PyTorch takes seconds
    from mpisim.problems.torch.flat_model import FlatModel


@problem("torch")
class Torch(ProblemWithTestSet):
    """f_i(x) = mean over the worker's samples of the cross-entropy of a model with parameters x.

    model, data : names registered by `models.model` and `samples.data_set`
    samples : use the first so many training samples, and at most as many test samples; 0: all
    width : of the model's layers; 1 is the paper's
    pool : images are averaged over squares of pool x pool pixels
    chunk : how many samples go through the model together, at most
    augment : move images of minibatches by up to 4 pixels and mirror them, at random
    mixed : forward passes in bfloat16
    device : "auto" uses an accelerator if there is one

    Samples that go through together share batch norm's statistics. So f_i is the loss of a model in
    training mode on the worker's samples in their order, chunk by chunk, which depends on x only.
    Every worker measures an equal share of the test set, with the means of the statistics over its
    training chunks at the same x.
    """

    model: str = "resnet18"
    data: str = "cifar10"
    samples: int = 0
    workers: int | None = None
    split: Literal["contiguous", "shuffled"] = "contiguous"
    remainder: Remainder = "drop"
    width: float = 1.0
    pool: int = 1
    chunk: int = 128
    augment: bool = False
    mixed: bool = False
    device: Literal["auto", "cpu", "accelerator"] = "auto"

    nonnegative = True
    portable = False

    def check(self) -> None:
        require(self.samples >= 0, "problem.samples", self.samples, "an integer >= 0")
        require(self.width > 0, "problem.width", self.width, "a number > 0")
        require(self.pool >= 1, "problem.pool", self.pool, "an integer >= 1")
        require(self.chunk >= 2, "problem.chunk", self.chunk, "an integer >= 2")

    def load(self, n: int, first: int, count: int, seed: int, dtype: np.dtype) -> None:
        """See `Problem.load`; `InputError` if PyTorch, the model or the data is missing."""
        data = samples.first(samples.load(self.data), self.samples)
        self.n, self.first, self.m, self.seed, self.dtype = n, first, count, seed, np.dtype(dtype)
        self.streams, own = Streams(seed), range(first, first + count)
        self.mean, self.inverse_deviation = normalisation(
            pooled(data.features, self.pool), self.dtype
        )
        starts, stops = row_ranges(len(data.labels), n, self.split, self.remainder)
        order = np.arange(len(data.labels))
        if self.split == "shuffled":
            order = shuffle(len(order), seed)
        mine = [order[starts[i] : stops[i]] for i in own]
        self.rows = np.array([len(rows) for rows in mine], np.int64)
        self.shards = [(pooled(data.features[r], self.pool), data.labels[r]) for r in mine]
        self.tests = len(data.test_labels)
        shares = [slice(self.tests * i // n, self.tests * (i + 1) // n) for i in own]
        self.test_shards = [
            (pooled(data.test_features[s], self.pool), data.test_labels[s]) for s in shares
        ]
        shape = pooled(data.features[:1], self.pool).shape[1:]
        self.flat_model = self._make_model(shape, data.classes)
        self.d, self.identical = self.flat_model.d, n == 1
        self.start = self.flat_model.point()
        self._last: tuple[np.ndarray, np.ndarray, list[Any]] | None = None  # see _evaluated
        where = self.flat_model.device.type
        self.identity = f"{self.model} on {self.data} sha256:{data.sha256} ({where})"

    def _make_model(self, shape: tuple[int, ...], classes: int) -> FlatModel:
        try:
            import torch

            from mpisim.problems.torch.flat_model import FlatModel, device_of
            from mpisim.problems.torch.models import MODELS
        except ImportError:
            raise InputError(
                'problem.name: "torch" needs PyTorch: pip install "mpisim[torch]"'
            ) from None
        make = choose(MODELS, self.model, "problem.model")
        try:
            device = device_of(self.device, self.first)
        except RuntimeError as error:
            raise InputError(f"problem.device: {error}") from None
        with torch.random.fork_rng(devices=[]):  # x^0 is PyTorch's own, from an addressed seed
            torch.manual_seed(int(self.streams.raw("initial point", 0, 0, 1, 1)[0, 0]) >> 1)
            model: Any = make(shape, classes, self.width)
        return FlatModel(model.to(getattr(torch, self.dtype.name)), device, self.mixed)

    @property
    def layers(self) -> tuple[int, ...]:
        """The sizes of the model's parameter tensors."""
        return self.flat_model.sizes

    def initial_point(self) -> np.ndarray:
        """The model's own random initialisation, by ``run.seed``; the same on every rank."""
        return self.start.copy()

    def losses_and_gradients(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        losses, gradients = np.empty(self.m), np.empty((self.m, self.d), self.dtype)
        correct, statistics = np.empty(self.m), []
        self.flat_model.to_point(x)
        for i in range(self.m):
            losses[i], correct[i], gradients[i] = self._full(i)
            statistics.append(self.flat_model.statistics())
        self._last = x, correct, statistics
        return losses, gradients

    def gradients_of(self, x: np.ndarray, members: np.ndarray) -> np.ndarray:
        gradients = np.empty((len(members), self.d), self.dtype)
        self.flat_model.to_point(x)
        for row, i in enumerate(members):
            gradients[row] = self._full(i)[2]
        return gradients

    def _full(self, i: int) -> tuple[float, int, np.ndarray]:
        """Worker i's `FlatModel.gradient` over all of its samples."""
        features, labels = self.shards[i]
        return self.flat_model.gradient(self._normalised(features), labels, self.chunk, 0)

    def batch_gradients(self, x: np.ndarray, batch: np.ndarray) -> np.ndarray:
        """See `Problem.batch_gradients`; dropout and augmentation are drawn for each round."""
        require(batch.shape[1] >= 2, "method.batch", batch.shape[1], "an integer >= 2")
        gradients = np.empty((self.m, self.d), self.dtype)
        seeds = self._draw("dropout").words(1)[:, 0] >> np.uint64(1)
        moves = self._draw("augment").uniforms(3 * batch.shape[1]) if self.augment else None
        self.flat_model.to_point(x)
        for i, (features, labels) in enumerate(self.shards):
            chosen = features[batch[i]]
            if moves is not None:
                chosen = augmented(chosen, moves[i].reshape(-1, 3))
            gradients[i] = self.flat_model.gradient(
                self._normalised(chosen), labels[batch[i]], self.chunk, int(seeds[i])
            )[2]
        return gradients

    def test(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        correct, statistics = self._evaluated(x)
        metrics, gradients = np.empty((self.m, 3)), np.empty((self.m, self.d), self.dtype)
        self.flat_model.to_point(x)
        for i, (features, labels) in enumerate(self.test_shards):
            loss, right, gradients[i] = self.flat_model.test(
                statistics[i], self._normalised(features), labels, self.chunk
            )
            share = len(labels) / self.tests
            metrics[i] = correct[i] / self.rows[i] / self.n, loss * share, right / self.tests
            gradients[i] *= self.dtype.type(share)
        return metrics, gradients

    def _evaluated(self, x: np.ndarray) -> tuple[np.ndarray, list[Any]]:
        """Each worker's number of samples classified correctly, and batch norm's statistics."""
        if self._last is None or self._last[0] is not x:
            self.losses_and_gradients(x)
        assert self._last is not None
        return self._last[1:]

    def _draw(self, purpose: str) -> Draw:
        return Draw(self.streams, purpose, self.round, self.first, self.m)

    def _normalised(self, features: np.ndarray) -> np.ndarray:
        """What the model takes: images with mean 0 and variance 1 in each channel."""
        if features.dtype != np.uint8:
            return features.astype(self.dtype, copy=False)
        return (features - self.mean) * self.inverse_deviation
