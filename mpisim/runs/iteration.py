"""One iteration of a method, x^k -> x^{k+1}."""

from __future__ import annotations

import numpy as np

from mpisim.comm.clock import OPTIMIZER, OTHER
from mpisim.comm.star import Star
from mpisim.core.round import Round
from mpisim.methods.estimators.base import Estimator
from mpisim.methods.method_table import Method
from mpisim.methods.optimizers import Optimizer


class Iteration:
    """The step of a method from one point to the next, with a step size gamma.

    round : the round in progress, which is set here for the other parts to see
    """

    def __init__(
        self,
        star: Star,
        round: Round,
        estimator: Estimator,
        optimizer: Optimizer,
        method: Method,
        gamma: float,
    ):
        self.star, self.round = star, round
        self.estimator, self.optimizer = estimator, optimizer
        self.method, self.gamma = method, gamma

    def next(self, k: int, x: np.ndarray) -> np.ndarray:
        """x^{k+1} from x^k, shape (d,): a new array. Collective."""
        star, method = self.star, self.method
        g = self.estimator.start(x) if k == 0 else self.estimator.estimate(x)
        star.clock.to(OPTIMIZER)
        gamma = self.gamma * method.schedule.multiple(k, self.round.rounds)
        g = g + method.weight_decay * x if method.weight_decay else g
        x = self.optimizer.step(x, g, gamma)
        star.clock.to(OTHER)
        if star.is_server:
            star.ledger.end_round()
        return x

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each part of the state, by name; numbers have ()."""
        parts = self.estimator.state() | self.optimizer.state()
        return {name: tuple(getattr(value, "shape", ())) for name, value in parts.items()}
