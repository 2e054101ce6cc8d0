"""Optimizers: from a point and a gradient estimate to the next point, the same on all ranks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np

from mpisim.core.arrays import maximum, sqrt
from mpisim.core.numerics.functions import power
from mpisim.core.registry import Registry, named
from mpisim.core.schema import require, share_of
from mpisim.core.state import Shared, Stateful

OPTIMIZERS: Registry[type[Optimizer]] = Registry("optimizer")


def optimizer(name: str):
    """Class decorator: makes an optimizer known under ``name``."""
    return named(OPTIMIZERS, name)


class Optimizer(Stateful, ABC):
    """Fields are keys of the ``[method]`` table; attributes that `step` sets are declared."""

    name: ClassVar[str]
    theorem: ClassVar[bool] = False  # whether the papers' step sizes hold for it
    in_ensembles: ClassVar[bool] = False  # `step` also takes those of runs, (runs, d) and (runs, 1)
    rounds: int

    def bind(self, rounds: int) -> Optimizer:
        """A copy without state, for a run of ``rounds`` rounds."""
        return self._bind(rounds=rounds)

    def of_rounds(self) -> dict[str, Any]:
        """What keys of it become in a run of ``rounds`` rounds: {key: value}."""
        return {}

    @abstractmethod
    def step(self, x: np.ndarray, g: np.ndarray, gamma: float) -> np.ndarray:
        """The next point from x (d,) and the estimate g (d,), with step size gamma: a new array."""


@optimizer("gd")
class GradientDescent(Optimizer):
    """x^{k+1} = x^k - gamma g^k."""

    theorem = in_ensembles = True

    def step(self, x: np.ndarray, g: np.ndarray, gamma: float) -> np.ndarray:
        return x - gamma * g


@optimizer("heavy-ball")
class HeavyBall(Optimizer):
    """x^{k+1} = x^k - gamma g^k + momentum (x^k - x^{k-1}) (Polyak, 1964)."""

    momentum: float = 0.9
    in_ensembles = True

    previous = Shared("x^{k-1}")

    def check(self) -> None:
        require(0 <= self.momentum < 1, "method.momentum", self.momentum, "a number in [0, 1)")
        self.previous = None

    def step(self, x: np.ndarray, g: np.ndarray, gamma: float) -> np.ndarray:
        following = x - gamma * g
        if self.previous is not None:
            following += self.momentum * (x - self.previous)
        self.previous = x
        return following


class Moments(Optimizer):
    """First and second moments m and v of the estimates, from 0; t counts the estimates."""

    beta1: float
    beta2: float
    nu: float

    m = Shared("first moment")
    v = Shared("second moment")
    t = Shared("estimates so far")

    def check(self) -> None:
        require(0 <= self.beta1 < 1, "method.beta1", self.beta1, "a number in [0, 1)")
        require(0 <= self.beta2 < 1, "method.beta2", self.beta2, "a number in [0, 1)")
        require(self.nu > 0, "method.nu", self.nu, "a number > 0")
        self.m = self.v = 0.0
        self.t = 0

    def add(self, g: np.ndarray, frozen: bool = False) -> None:
        """m = beta1 m + (1 - beta1) g and, unless frozen, v = beta2 v + (1 - beta2) g^2."""
        self.m = self.beta1 * self.m + (1 - self.beta1) * g
        if not frozen:
            self.v = self.beta2 * self.v + (1 - self.beta2) * g * g
        self.t = self.t + 1

    def denominators(self) -> np.ndarray:
        """What the coordinates of m were divided by in the last step, (d,); t > 0."""
        return self.corrected_root(self.v)

    def corrected(self) -> np.ndarray:
        """m, corrected for the bias of the start at 0."""
        return self.m / (1 - power(self.beta1, self.t))

    def corrected_root(self, v: np.ndarray) -> np.ndarray:
        """sqrt(v) + nu, with v corrected for the bias of the start at 0."""
        return sqrt(v / (1 - power(self.beta2, self.t))) + self.nu


@optimizer("amsgrad")
class AMSGrad(Moments):
    """CD-Adam, Algorithm 1, lines 13-16 (Reddi et al., 2018).

    vhat = max(vhat, v),  x^{k+1} = x^k - gamma m / sqrt(vhat + nu), no bias correction.

    variant : "paper", or "code": as in the published CD-Adam code, m and vhat are bias-corrected,
        and nu is added outside the root.
    """

    beta1: float = 0.9
    beta2: float = 0.99
    nu: float = 1e-8
    variant: Literal["paper", "code"] = "paper"

    vhat = Shared("largest v so far")

    def check(self) -> None:
        super().check()
        self.vhat = 0.0

    def step(self, x: np.ndarray, g: np.ndarray, gamma: float) -> np.ndarray:
        self.add(g)
        self.vhat = maximum(self.vhat, self.v)
        if self.variant == "code":
            return x - gamma * (self.corrected() / self.denominators())
        return x - gamma * self.m / self.denominators()

    def denominators(self) -> np.ndarray:
        if self.variant == "code":
            return self.corrected_root(self.vhat)
        return sqrt(self.vhat + self.nu)


@optimizer("adam")
class Adam(Moments):
    """x^{k+1} = x^k - gamma m' / (sqrt(v') + nu), m' and v' bias-corrected (Kingma, Ba, 2015)."""

    beta1: float = 0.9
    beta2: float = 0.999
    nu: float = 1e-8

    def step(self, x: np.ndarray, g: np.ndarray, gamma: float) -> np.ndarray:
        self.add(g)
        return x - gamma * (self.corrected() / self.denominators())


@optimizer("1bit-adam")
class OneBitAdamStep(Moments):
    """1-bit Adam (Tang et al., 2021, Algorithm 1); its estimator has the same name.

    Adam without bias correction for ``warmup`` rounds. Then the estimate is the momentum, and v is
    frozen: x^{k+1} = x^k - gamma m / (sqrt(v) + nu).

    variant : "paper", or "code": as in the published CD-Adam code, estimates are gradients, whose
        momentum is taken here. The last estimate of v is that of round ``warmup`` - 2. m and v are
        bias-corrected in all rounds k, by 1 - beta^{k+1}, also when v is frozen.
    """

    warmup: int | float = 0.13
    variant: Literal["paper", "code"] = "paper"
    beta1: float = 0.9
    beta2: float = 0.99
    nu: float = 1e-8

    def of_rounds(self) -> dict[str, Any]:
        return {"warmup": warmup_rounds(self.warmup, self.rounds)}

    def check(self) -> None:
        super().check()
        code = int(self.variant == "code")
        self.first = warmup_rounds(self.warmup, self.rounds) - code
        least = f"at least {1 + code} rounds, or there is no v"
        require(self.first > 0, "method.warmup", self.warmup, least)

    def step(self, x: np.ndarray, g: np.ndarray, gamma: float) -> np.ndarray:
        warm, code = self.t < self.first, self.variant == "code"
        if warm or code:
            self.add(g, frozen=not warm)
        if code:
            return x - gamma * (self.corrected() / self.denominators())
        return x - gamma * (self.m if warm else g) / self.denominators()

    def denominators(self) -> np.ndarray:
        return super().denominators() if self.variant == "code" else sqrt(self.v) + self.nu


def warmup_rounds(warmup: int | float, rounds: int) -> int:
    """1-bit Adam's warm-up in rounds: as given, or a share of ``rounds``, rounded up."""
    share = isinstance(warmup, float) and 0 < warmup < 1
    integer = isinstance(warmup, int) and warmup >= 0
    require(share or integer, "method.warmup", warmup, "an integer >= 0 or a share below 1")
    return -share_of(-warmup, rounds) if share else int(warmup)
