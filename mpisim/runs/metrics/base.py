"""The interface of a metric, the registry, and the columns of a test set."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, Self, cast

import numpy as np

from mpisim.comm.network import Observer
from mpisim.comm.star import Star
from mpisim.core.arrays import EVALUATION, to_host
from mpisim.core.lanes import dot
from mpisim.core.registry import Names
from mpisim.core.state import Stateful
from mpisim.methods.optimizers import Optimizer
from mpisim.problems.base import Problem, ProblemWithTestSet
from mpisim.runs.log.schema import Column

METRICS: Names[type[Metric]] = Names("metric")


def metric(name: str):
    """Class decorator: makes a metric known under ``name`` in ``run.columns``."""

    def register(cls):
        METRICS[name] = cls
        return cls

    return register


class Metric(Stateful, Observer, ABC):
    """Some columns of ``/rounds``, whose time is not in the log's clocks.

    What it keeps between two calls is declared (`mpisim.core.state`), and `check` sets its start.

    star, problem, optimizer : the run's
    logged : whether x^k has a row in the log
    """

    columns: ClassVar[Sequence[Column]]
    star: Star
    problem: Problem
    optimizer: Optimizer
    logged: Callable[[int], bool]

    def bind(
        self, star: Star, problem: Problem, optimizer: Optimizer, logged: Callable[[int], bool]
    ) -> Self:
        """A copy for a run."""
        return self._bind(star=star, problem=problem, optimizer=optimizer, logged=logged)

    @abstractmethod
    def values(self, x: np.ndarray) -> tuple[float, ...]:
        """The values in the row of x^k, after `losses_and_gradients` there. Collective.

        Rank 0's values are written.
        """

    def passed(self, x: np.ndarray) -> None:
        """Called with every x^k (d,), logged or not, after its row and before its round."""


class Tests(Metric):
    """Columns of a problem with a test set, which are always logged."""

    columns: ClassVar[Sequence[Column]] = [
        ("train_accuracy", np.float64, "1", "share of the training samples classified rightly"),
        ("test_loss", np.float64, "1", "mean loss on the test set at x^k"),
        ("test_accuracy", np.float64, "1", "share of the test samples classified rightly"),
        ("test_grad_norm_sq", np.float64, "1", "squared norm of the gradient of the test loss"),
    ]

    def values(self, x: np.ndarray) -> tuple[float, ...]:
        shares, gradients = cast(ProblemWithTestSet, self.problem).test(x)
        rows = np.concatenate([shares, to_host(gradients, EVALUATION)], axis=1)
        total = self.star.sum_over_workers(rows)
        gradient = total[shares.shape[1] :]
        return (*total[: shares.shape[1]].tolist(), float(dot(gradient, gradient)))


def metrics_of(
    names: Iterable[str],
    star: Star,
    problem: Problem,
    optimizer: Optimizer,
    logged: Callable[[int], bool],
) -> list[Metric]:
    """The metrics called ``names``, in this order, and those of a test set, all on the star."""
    kinds = [METRICS[name] for name in names] + [Tests] * problem.tested
    metrics = [kind().bind(star, problem, optimizer, logged) for kind in kinds]
    for metric in metrics:
        star.attach(metric)
    return metrics
