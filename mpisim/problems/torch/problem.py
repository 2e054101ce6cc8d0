"""Any PyTorch module as a problem: f_i is its mean loss over a worker's samples.

The problem ``torch`` takes networks and data sets by name.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from mpisim.core.errors import InputError, library
from mpisim.core.rng import Draw, Streams
from mpisim.core.schema import choose, require
from mpisim.problems.base import ProblemWithTestSet, problem
from mpisim.problems.data.arrange import Remainder, row_ranges, shuffle
from mpisim.problems.data.by_label import BY_LABEL, UNLIKE, SplitKeys, label_order, read_client_ids
from mpisim.problems.torch.samples import Samples, load, pooled

if TYPE_CHECKING:  # importing PyTorch takes seconds
    import torch


@dataclasses.dataclass(eq=False)
class TorchProblem(ProblemWithTestSet, rows_of_points=True):
    """f_i(x) = mean over the worker's samples of the loss of a module with parameters x.

    Parameters without ``requires_grad`` are no part of x.

    A subclass with the decorator `mpisim.problem` defines `make_module` and `make_samples`, and
    `loss` and `correct` where it does not classify. Its fields are more keys of its table.

    samples : use the first so many training samples, and at most as many test samples; 0: all
    log_samples : judge the rows of the log on the first so many of them, an equal share of each
        worker's, and on at most so many test samples; 0: on all
    chunk : how many samples go through the module together, at most
    augment : move images of minibatches by up to 4 pixels and mirror them, at random
    mixed : forward passes in bfloat16
    tf32 : products and convolutions of an accelerator round their float32 inputs to TF32
    device : "auto" uses an accelerator if there is one

    Samples that go through together share batch norm's statistics. So f_i is the loss of a module
    in training mode on the worker's samples in their order, chunk by chunk, which depends on x
    only. Every worker measures an equal share of the test set, with the means of the statistics
    over its training chunks at the same x.
    """

    samples: int = 0
    log_samples: int = 0
    workers: int | None = None
    split: Literal[
        "contiguous", "shuffled", "dirichlet", "pathological", "partly-shuffled", "natural"
    ] = "contiguous"
    remainder: Remainder = "drop"
    chunk: int = 128
    augment: bool = False
    mixed: bool = False
    tf32: bool = False
    device: Literal["auto", "cpu", "accelerator"] = "auto"
    alpha: float | None = None
    pieces: int | None = None
    similarity: float | None = None
    client_ids: str | None = None

    libraries: ClassVar[Sequence[str]] = ("torch",)
    portable: ClassVar[bool] = False
    epochs_between_rows: ClassVar[int] = 2

    @abstractmethod
    def make_module(self, shape: tuple[int, ...]) -> torch.nn.Module:
        """The module, initialised at random, for samples of this shape. The same on every rank."""

    @abstractmethod
    def make_samples(self) -> Samples:
        """Training and test samples; `samples_of` makes them of tensors or Datasets."""

    def prepare(self, features: np.ndarray) -> np.ndarray:
        """What is done to features (N, ...) once, before they go to the device: nothing."""
        return features

    def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """The sum of the losses of b samples, from their outputs and targets (b, ...)."""
        from torch.nn.functional import cross_entropy

        return cross_entropy(outputs, targets, reduction="sum")

    def correct(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """How many of b samples have the largest output at their class; NaN without classes."""
        classes = targets.dim() == 1 and not targets.is_floating_point()
        if not classes or outputs.dim() != 2 or outputs.shape[1] < 2:
            return outputs.new_full((), float("nan"))
        return (outputs.argmax(1) == targets).sum()

    def about(self) -> str:
        """What is trained on what, for the log."""
        return f"{type(self).__name__} on its samples"

    def check(self) -> None:
        require(self.samples >= 0, "problem.samples", self.samples, "an integer >= 0")
        require(self.log_samples >= 0, "problem.log_samples", self.log_samples, "an integer >= 0")
        require(self.chunk >= 2, "problem.chunk", self.chunk, "an integer >= 2")
        self._split_keys().require(self.split, self.remainder, True)

    def _split_keys(self) -> SplitKeys:
        return SplitKeys(self.alpha, self.pieces, self.similarity, self.client_ids)

    def load(self, n: int, first: int, count: int, seed: int, dtype: np.dtype) -> None:
        """See `Problem.load`; `InputError` if PyTorch, the module or the data is missing."""
        given = self.make_samples().first(self.samples)
        features, tests = self.prepare(given.features), self.prepare(given.test_features)
        data = dataclasses.replace(given, features=features, test_features=tests)
        self.n, self.first, self.m, self.dtype = n, first, count, np.dtype(dtype)
        self.streams, self.classes = Streams(seed), data.classes
        self.sampled_rows = self.log_samples > 0
        shape, count = data.features.shape[1:], len(data.test_labels)
        allowed = "false for samples that are not images (N, channels, height, width)"
        require(not self.augment or len(shape) == 3, "problem.augment", self.augment, allowed)
        few = 0 < self.log_samples < 2 * n
        require(not few, "problem.log_samples", self.log_samples, f"0, or at least 2 n = {2 * n}")
        self.tests = min(count, self.log_samples or count)
        self._to_device(data, self._split(data.labels))
        self.d, self.identical = self.flat_model.d, n == 1
        self.shapes = self.flat_model.shapes
        self.start = self.flat_model.x.clone()
        self._last: tuple[Any, np.ndarray, list[Any]] | None = None  # see `test`
        where = self.flat_model.device.type
        self.identity = f"{self.about()} sha256:{given.sha256} ({where}){self._clients}"

    def digests(self) -> list[str]:
        clients = [read_client_ids(self.client_ids).sha256] if self.client_ids else []
        return [self.make_samples().first(self.samples).sha256, *clients]

    def _split(self, labels: np.ndarray) -> list[np.ndarray]:
        """The numbers of each worker's samples; sets `rows`, and what the log says of them."""
        samples = len(labels)
        order = shuffle(samples, self.seed) if self.split == "shuffled" else np.arange(samples)
        self._shares, self._clients = None, ""
        classes = labels.ndim == 1 and labels.dtype.kind in "iu"
        if self.split == "natural":
            clients = read_client_ids(str(self.client_ids))
            order, (starts, stops) = clients.order(samples), clients.ranges(self.n)
            self._clients = f", clients sha256:{clients.sha256}"
        else:
            starts, stops = row_ranges(samples, self.n, self.split, self.remainder)
        if self.split in BY_LABEL:
            allowed = "a split that is not by label: the labels are no classes"
            require(classes, "problem.split", self.split, allowed)
            keys = self._split_keys()
            order = label_order(labels, self.split, stops - starts, keys, self.seed)
        samples_of = [order[starts[i] : stops[i]] for i in range(self.first, self.first + self.m)]
        self.rows = np.array([len(rows) for rows in samples_of], np.int64)
        if self.split in UNLIKE and classes:
            kinds = np.unique(labels)
            shares = [(labels[rows, None] == kinds).mean(axis=0) for rows in samples_of]
            self._shares = np.array(shares).reshape(self.m, len(kinds))
        return samples_of

    def label_shares(self) -> np.ndarray | None:
        return self._shares

    def _to_device(self, data: Samples, samples_of: list[np.ndarray]) -> None:
        """Put the module there, and the samples of each worker, with the numbers ``samples_of``.

        The first `tests` test samples are dealt to all workers in equal shares.
        """
        library("torch", "torch", f"problem.name: {self.name!r}")
        import torch

        from mpisim.core.numerics.tensors import Tensors, dtype_of
        from mpisim.problems.torch import network

        device = network.device_of(self.device, network.local_rank())
        network.set_arithmetic(device, self.tf32)
        with torch.random.fork_rng(devices=[]):  # x^0 is PyTorch's own, from an addressed seed
            torch.manual_seed(int(self.streams.raw("initial point", 0, 0, 1, 1)[0, 0]) >> 1)
            module = self.make_module(data.features.shape[1:])
        parameters = list(module.parameters())
        trained = any(p.requires_grad for p in parameters)
        if not trained or any(map(torch.nn.parameter.is_lazy, parameters)):
            allowed = "allowed: one with parameters that require gradients, and no lazy layers"
            raise InputError(
                f"problem {self.name!r}: make_module returns another module; {allowed}"
            )
        module = module.to(dtype_of(self.dtype))
        self.flat_model = network.FlatModel(module, device, self.loss, self.correct, self.mixed)
        self.arrays = Tensors(device)
        noisy = any(isinstance(layer, network.COUPLED) for layer in module.modules())
        self.finite_sum = self.finite_sum and not (noisy or self.augment)
        place = network.Normalise(data.features, device, self.dtype).batch
        self.shards = [place(data.features[rows], data.labels[rows]) for rows in samples_of]
        ends = [self.tests * i // self.n for i in range(self.first, self.first + self.m + 1)]
        self.test_shards = [
            place(data.test_features[a:b], data.test_labels[a:b]) for a, b in pairwise(ends)
        ]
        judged = -(-self.log_samples // self.n) or int(self.rows.max(initial=0))
        self.judged = [shard.first(judged) for shard in self.shards]
        if self.m:
            classes = data.labels.ndim == 1 and data.labels.dtype.kind in "iu"
            entropy = classes and type(self).loss is TorchProblem.loss
            labels = np.concatenate([data.labels, data.test_labels]) if entropy else None
            try:
                self.flat_model.require_fit(self.shards[0], labels)
            except InputError as error:
                raise InputError(f"problem {self.name!r}: {error}") from error.__cause__

    def initial_point(self) -> Any:
        """The module's own random initialisation, by ``run.seed``; the same on every rank."""
        return self.start.clone()

    def losses_and_gradients(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Over the samples that rows of the log are judged on: all, or ``log_samples``."""
        gradients = self._vectors(self.m)
        sums, statistics = [], []
        for i, batch in self._at_points(x, self.judged):
            summed, gradients[i] = self.flat_model.gradient(batch, self.chunk, 0)
            sums.append(summed)
            statistics.append(self.flat_model.statistics.flat.clone())
        losses, correct = self._read(sums)
        rows = np.array([len(batch) for batch in self.judged])
        self._last = x, correct / rows, statistics
        return losses / rows, gradients

    def gradients(self, x: np.ndarray, *, members: np.ndarray | None = None) -> np.ndarray:
        members = np.arange(self.m) if members is None else members
        gradients = self._vectors(len(members))
        for row, shard in self._at_points(x, [self.shards[i] for i in members]):
            gradients[row] = self.flat_model.gradient(shard, self.chunk, 0)[1]
        return gradients

    def batch_gradients(
        self, x: np.ndarray, batch: np.ndarray, *, members: np.ndarray | None = None
    ) -> np.ndarray:
        """See `Problem.batch_gradients`; dropout and augmentation are drawn for each round."""
        import torch

        from mpisim.problems.torch.network import moves_of

        require(batch.shape[1] >= 2, "method.batch", batch.shape[1], "an integer >= 2")
        members = np.arange(self.m) if members is None else members
        gradients = self._vectors(len(members))
        seeds = self._draw("dropout").words(1)[members, 0] >> np.uint64(1)
        device, steps = self.flat_model.device, None
        if self.augment:
            uniforms = self._draw("augment").uniforms(3 * batch.shape[1])[members]
            steps = torch.from_numpy(moves_of(uniforms.reshape(*batch.shape, 3))).to(device)
        chosen = torch.from_numpy(np.ascontiguousarray(batch)).to(device)
        for i, shard in self._at_points(x, [self.shards[i] for i in members]):
            chosen_samples = shard.chosen(chosen[i], None if steps is None else steps[i])
            gradients[i] = self.flat_model.gradient(chosen_samples, self.chunk, int(seeds[i]))[1]
        return gradients

    def test(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self._last is None or self._last[0] is not x:
            self.losses_and_gradients(x)
        assert self._last is not None
        _, shares, statistics = self._last
        gradients, sums = self._vectors(self.m), []
        rows = np.array([len(batch) for batch in self.test_shards])
        for i, batch in self._at_points(x, self.test_shards):
            summed, gradients[i] = self.flat_model.test(statistics[i], batch, self.chunk)
            gradients[i] *= float(rows[i] / self.tests)
            sums.append(summed)
        losses, correct = self._read(sums)
        losses = losses / np.maximum(rows, 1) * (rows / self.tests)
        return np.column_stack([shares / self.n, losses, correct / self.tests]), gradients

    def _at_points(self, x: Any, shards: list[Any]) -> Iterator[tuple[int, Any]]:
        """The shards, numbered, each when the module is at its x: (d,), or a row for each."""
        import torch

        for i, shard in enumerate(shards):
            if i == 0 or x.ndim == 2:
                self.flat_model.x.copy_(torch.as_tensor(x if x.ndim == 1 else x[i]))
            yield i, shard

    def _read(self, sums: list[torch.Tensor]) -> np.ndarray:
        """The sums of all workers, read from the device at once: (2, m), float64."""
        import torch

        return torch.stack(sums, 1).cpu().numpy() if sums else np.empty((2, 0))

    def _vectors(self, count: int) -> Any:
        """Room for ``count`` vectors of length d on the device."""
        return self.start.new_empty((count, self.d))

    def _draw(self, purpose: str) -> Draw:
        return Draw(self.streams, purpose, self.round, self.first, self.m)


@problem("torch")
class Torch(TorchProblem):
    """A registered network, with the cross-entropy of its outputs; see `TorchProblem`.

    model, data : names registered by `models.model` and `samples.data_set`
    width : of the model's layers; 1 is the paper's
    pool : images are averaged over squares of pool x pool pixels
    """

    model: str = "resnet18"
    data: str = "cifar10"
    width: float = 1.0
    pool: int = 1

    nonnegative = True

    def check(self) -> None:
        super().check()
        require(self.width > 0, "problem.width", self.width, "a number > 0")
        require(self.pool >= 1, "problem.pool", self.pool, "an integer >= 1")

    def make_samples(self) -> Samples:
        return load(self.data)

    def prepare(self, features: np.ndarray) -> np.ndarray:
        return pooled(features, self.pool)

    def make_module(self, shape: tuple[int, ...]) -> torch.nn.Module:
        from mpisim.problems.torch.models import MODELS

        return choose(MODELS, self.model, "problem.model")(shape, self.classes, self.width)

    def about(self) -> str:
        return f"{self.model} on {self.data}"
