"""Columns that ``run.columns`` adds to a log, and those of problems with a test set.

A new metric is a `Metric` with the decorator `metric`; its columns come last.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, Self, cast

import numpy as np

from mpisim.comm.network import Observer
from mpisim.comm.star import Star
from mpisim.core.arrays import EVALUATION, to_host
from mpisim.core.lazy_rows import LazyRows, row_blocks
from mpisim.core.numerics.lanes import dot
from mpisim.core.numerics.sums import add_rows
from mpisim.core.registry import Registry, registered
from mpisim.core.schema import package_table
from mpisim.core.state import Stateful
from mpisim.methods.estimators.base import Estimator
from mpisim.methods.estimators.participation import Clocked
from mpisim.methods.optimizers import Optimizer
from mpisim.problems.base import Problem, ProblemWithTestSet
from mpisim.runs.log.schema import OF_METRICS, Column

METRICS: Registry[Metric] = Registry("metric")
METRICS.provide(__package__, package_table(__file__, "modules.toml"))


def metric(name: str):
    """Class decorator: makes a metric known under ``name`` in ``run.columns``."""

    return registered(METRICS, name)


def column(name: str, text: str, unit: str = "1") -> Column:
    """A column of floats."""
    return name, np.float64, unit, text


class Metric(Stateful, Observer, ABC):
    """Some columns of ``/rounds``, whose time is not in the log's clocks.

    What it keeps between two calls is declared (`mpisim.core.state`), and `check` sets its start.

    star, problem, estimator, optimizer : the run's
    logged : whether x^k has a row in the log
    """

    columns: ClassVar[Sequence[Column]]
    star: Star
    problem: Problem
    estimator: Estimator
    optimizer: Optimizer
    logged: Callable[[int], bool]

    def bind(
        self,
        star: Star,
        problem: Problem,
        estimator: Estimator,
        optimizer: Optimizer,
        logged: Callable[[int], bool],
    ) -> Self:
        """A copy for a run."""
        context = {"problem": problem, "estimator": estimator, "optimizer": optimizer}
        return self._bind(star=star, logged=logged, **context)

    def _mean(self, rows: np.ndarray | LazyRows) -> np.ndarray:
        """The mean of rows (m, d) over all workers, (d,), on every rank. Collective."""

        def fold(total: np.ndarray) -> None:
            for _, block in row_blocks(rows):
                add_rows(total, block)

        total = np.zeros(self.problem.d)
        self.star.relay(total, fold)
        return total / self.star.n

    def _due(self) -> bool:
        """Whether the round in progress leads to a row of the log."""
        return self.logged(self.star.round + 1)

    @abstractmethod
    def values(self, x: np.ndarray) -> tuple[float, ...]:
        """The values in the row of x^k, after `losses_and_gradients` there. Collective.

        Rank 0's values are written.
        """

    def passed(self, x: np.ndarray) -> None:
        """Called with every x^k (d,), logged or not, after its row and before its round."""


class Tests(Metric):
    """Columns of a problem with a test set, which are always logged."""

    columns = OF_METRICS["tests"]

    def values(self, x: np.ndarray) -> tuple[float, ...]:
        shares, gradients = cast(ProblemWithTestSet, self.problem).test(x)
        rows = np.concatenate([shares, to_host(gradients, EVALUATION)], axis=1)
        total = self.star.sum_over_workers(rows)
        gradient = total[shares.shape[1] :]
        return (*total[: shares.shape[1]].tolist(), float(dot(gradient, gradient)))


class Events(Metric):
    """Columns of a method on an event clock, which are always logged."""

    columns = OF_METRICS["events"]

    def values(self, x: np.ndarray) -> tuple[float, ...]:
        parts = vars(self.estimator)
        if "now" not in parts:  # x^0
            return 0.0, 0.0, 0.0
        idle = cast(Clocked, self.estimator).idle_share
        return float(parts["now"]), float(parts["delay"]), idle


def metrics_of(
    names: Iterable[str],
    star: Star,
    problem: Problem,
    estimator: Estimator,
    optimizer: Optimizer,
    logged: Callable[[int], bool],
) -> list[Metric]:
    """The metrics called ``names``, in this order, and those of a test set, all on the star."""
    kinds = [METRICS[name] for name in names] + [Tests] * problem.tested
    metrics = [kind().bind(star, problem, estimator, optimizer, logged) for kind in kinds]
    for metric in metrics:
        star.attach(metric)
    return metrics
