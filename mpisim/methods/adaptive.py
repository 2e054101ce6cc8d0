"""Adaptive optimizers: AMSGrad, Adam, and 1-bit Adam's."""

from __future__ import annotations

from typing import Literal

import numpy as np

from mpisim.core.schema import require
from mpisim.methods.optimizers import Optimizer, optimizer


class _Moments(Optimizer):
    """First and second moments m and v of the estimates, which start at 0."""

    beta1: float
    beta2: float
    nu: float

    def bind(self, gamma: float, rounds: int) -> Optimizer:
        require(0 <= self.beta1 < 1, "method.beta1", self.beta1, "a number in [0, 1)")
        require(0 <= self.beta2 < 1, "method.beta2", self.beta2, "a number in [0, 1)")
        require(self.nu > 0, "method.nu", self.nu, "a number > 0")
        return super().bind(gamma, rounds)

    def moments(self, g: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
        """m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2, and how many there were."""
        state, zero = self.state, np.zeros_like(g)
        state["m"] = self.beta1 * state.get("m", zero) + (1 - self.beta1) * g
        state["v"] = self.beta2 * state.get("v", zero) + (1 - self.beta2) * g * g
        state["t"] = state.get("t", np.zeros((), np.int64)) + 1
        return state["m"], state["v"], int(state["t"])

    def corrected(self, m: np.ndarray, v: np.ndarray, t: int) -> np.ndarray:
        """m / (sqrt(v) + nu), both without the bias of the start at 0."""
        m, v = m / (1 - self.beta1**t), v / (1 - self.beta2**t)
        return m / (np.sqrt(v) + self.nu)


@optimizer("amsgrad")
class AMSGrad(_Moments):
    """CD-Adam, Algorithm 1, lines 13-16 (Reddi et al., 2018).

    vhat = max(vhat, v),  x^{k+1} = x^k - gamma m / sqrt(vhat + nu), no bias correction.

    variant : "paper", or "code": as the published CD-Adam code steps, m and vhat without the bias
        of the start at 0, and nu added outside the root.
    """

    beta1: float = 0.9
    beta2: float = 0.99
    nu: float = 1e-8
    variant: Literal["paper", "code"] = "paper"

    def step(self, x: np.ndarray, g: np.ndarray) -> np.ndarray:
        m, v, t = self.moments(g)
        self.state["vhat"] = vhat = np.maximum(self.state.get("vhat", 0.0), v)
        if self.variant == "code":
            return x - self.gamma * self.corrected(m, vhat, t)
        return x - self.gamma * m / np.sqrt(vhat + self.nu)


@optimizer("adam")
class Adam(_Moments):
    """x^{k+1} = x^k - gamma m' / (sqrt(v') + nu), m' and v' bias-corrected (Kingma, Ba, 2015)."""

    beta1: float = 0.9
    beta2: float = 0.999
    nu: float = 1e-8

    def step(self, x: np.ndarray, g: np.ndarray) -> np.ndarray:
        return x - self.gamma * self.corrected(*self.moments(g))


@optimizer("1bit-adam")
class OneBitAdamStep(_Moments):
    """1-bit Adam (Tang et al., 2021, Algorithm 1); its estimator has the same name.

    Adam without bias correction for ``warmup`` rounds; then the estimate is the momentum itself,
    and v is frozen: x^{k+1} = x^k - gamma m / (sqrt(v) + nu).

    variant : "paper", or "code": the estimate is a gradient, whose momentum m is taken here.
    """

    warmup: int | float = 0.13
    variant: Literal["paper", "code"] = "paper"
    beta1: float = 0.9
    beta2: float = 0.99
    nu: float = 1e-8

    def bind(self, gamma: float, rounds: int) -> Optimizer:
        from mpisim.methods.estimators.one_bit_adam import warmup_rounds

        self.rounds = warmup_rounds(self.warmup, rounds)
        require(self.rounds > 0, "method.warmup", self.warmup, "at least one round, which gives v")
        return super().bind(gamma, rounds)

    def step(self, x: np.ndarray, g: np.ndarray) -> np.ndarray:
        if int(self.state.get("t", 0)) < self.rounds:
            m, v, _ = self.moments(g)
        else:
            m, v = g, self.state["v"]
            if self.variant == "code":
                m = self.state["m"] = self.beta1 * self.state["m"] + (1 - self.beta1) * g
        return x - self.gamma * m / (np.sqrt(v) + self.nu)
