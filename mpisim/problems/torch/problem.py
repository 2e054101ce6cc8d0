"""The problem ``torch``: networks and data sets by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpisim.core.schema import choose, require
from mpisim.problems.base import problem
from mpisim.problems.torch.base import TorchProblem
from mpisim.problems.torch.samples import Samples, load
from mpisim.problems.torch.transforms import pooled

if TYPE_CHECKING:
    import torch


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
