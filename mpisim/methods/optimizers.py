"""From a point and a gradient estimate to the next point: (x, g) -> x, alike on all ranks."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from mpisim.core.schema import require

OPTIMIZERS: dict[str, type[Optimizer]] = {}


def optimizer(name: str):
    """Class decorator: makes an optimizer known under ``name``."""

    def register(cls):
        OPTIMIZERS[name] = dataclasses.dataclass(cls)
        cls.name = name
        return cls

    return register


class Optimizer(ABC):
    """Fields are keys of the ``[method]`` table; ``gamma`` is the step size.

    ``state`` is a plain record of arrays (d,): saving it saves the optimizer.
    """

    name: ClassVar[str]
    theorem: ClassVar[bool] = False  # do the papers' step sizes hold for it?
    gamma: float
    state: dict[str, np.ndarray]

    def bind(self, gamma: float, rounds: int) -> Optimizer:
        """Set the step size for a run of ``rounds`` rounds, and forget all state."""
        self.gamma, self.state = gamma, {}
        return self

    @abstractmethod
    def step(self, x: np.ndarray, g: np.ndarray) -> np.ndarray:
        """The next point, a new array (d,)."""


@optimizer("gd")
class GradientDescent(Optimizer):
    """x^{k+1} = x^k - gamma g^k."""

    theorem = True

    def step(self, x: np.ndarray, g: np.ndarray) -> np.ndarray:
        return x - self.gamma * g


@optimizer("heavy-ball")
class HeavyBall(Optimizer):
    """x^{k+1} = x^k - gamma g^k + momentum (x^k - x^{k-1}) (Polyak, 1964)."""

    momentum: float = 0.9

    def bind(self, gamma: float, rounds: int) -> Optimizer:
        require(0 <= self.momentum < 1, "method.momentum", self.momentum, "a number in [0, 1)")
        return super().bind(gamma, rounds)

    def step(self, x: np.ndarray, g: np.ndarray) -> np.ndarray:
        following = x - self.gamma * g
        if "previous" in self.state:
            following += self.momentum * (x - self.state["previous"])
        self.state["previous"] = x
        return following
