"""The row of x^k: f and its gradient over all workers, and the cost until x^k was known.

Metrics are the columns that ``run.columns`` adds, and those of problems with a test set. A new one
is a `Metric` with the decorator `metric`; its columns come last.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from math import nan
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np

from mpisim.comm.clock import PARALLEL, SlowestPath
from mpisim.comm.ledger import COLUMNS as BITS
from mpisim.comm.network import Observer
from mpisim.comm.star import Star
from mpisim.core.arrays import to_host
from mpisim.core.lazy_rows import LazyRows, row_blocks
from mpisim.core.numerics.lanes import dot
from mpisim.core.numerics.sums import add_rows
from mpisim.core.registry import Registry, registered
from mpisim.core.schema import package_table
from mpisim.core.state import Stateful
from mpisim.methods.estimators.base import Estimator
from mpisim.methods.estimators.batches import Clocked
from mpisim.methods.optimizers import Optimizer
from mpisim.methods.oracle import Oracle
from mpisim.problems.base import Problem, ProblemWithTestSet
from mpisim.runs.log.schema import OF_METRICS, TIMES, Column

METRICS: Registry[type[Metric]] = Registry("metric")
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
    logged : whether x^k has a row in the log, or has one if a signal ends the run there
    """

    columns: ClassVar[Sequence[Column]]
    star: Star
    problem: Problem
    estimator: Estimator
    optimizer: Optimizer
    logged: Callable[[int], bool]

    def bind(self, **context: Any) -> Self:
        """A copy for a run, with all of the above."""
        return self._bind(**context)

    def _mean(self, rows: np.ndarray | LazyRows, count: int = 0) -> np.ndarray:
        """The mean of rows (m, d) over all workers, or over ``count`` that have rows, (d,).

        The same on every rank. Collective.
        """

        def fold(total: np.ndarray) -> None:
            for _, block in row_blocks(rows):
                add_rows(total, block)

        total = np.zeros(self.problem.d)
        self.star.relay(total, fold)
        return total / (count or self.star.n)

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
        rows = np.concatenate([shares, to_host(gradients)], axis=1)
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


Row = dict[str, Any]  # the values of a log's columns by name, in their order

SECONDS = [name for name, *_ in TIMES]

# What follows the gradient in the message that passes all ranks.
TOTALS = np.dtype(
    [
        ("loss", np.float64),
        ("oracle_calls", np.float64),
        ("signal", np.float64),  # that a rank has received
        ("checkpoint", np.float64),  # whether rank 0 wants one
        ("longest", np.float64),  # seconds that a rank was busy since the last row
        ("bits", np.float64, len(BITS)),  # rank 0's
        ("slowest", np.float64, len(PARALLEL)),  # seconds of the slowest rank's phases
    ]
)


@dataclasses.dataclass(frozen=True)
class End:
    """How a run ended: the status, the last row, and its x^k, shape (d,).

    before : the log was complete, and nothing ran
    stopped_by : "rounds", or the condition of ``run.stop`` that the last row met; empty unless the
        run is done

    Rank 0 has the log's attributes, the sha256 of the file that it has written, if any, and, with
    ``Output.keep``, the columns; other ranks have none.
    Only rank 0 knows the seconds of the row.
    """

    status: str
    row: Row
    x: np.ndarray
    stopped_by: str = ""
    columns: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    attributes: dict[str, Any] = dataclasses.field(default_factory=dict)
    sha256: str = ""
    before: bool = False


class Evaluation(NamedTuple):
    """A row without the metrics' columns, a signal that a rank has received (0: none), and whether
    a checkpoint is wanted; the same on all ranks, but for the seconds, which rank 0 knows."""

    row: Row
    signal: int
    checkpoint: bool


class Evaluator:
    """Evaluates rows with one message, which passes through all ranks in worker order; its end is
    sent to all.

    The message has the gradient (d), then `TOTALS`. The time that a rank was busy excludes the
    gradients of the last row, which are computed before the common start. An ``explicit`` problem
    knows f, so gradient and loss are left out. If some workers attack, f is the mean over the
    others.
    """

    def __init__(self, star: Star, oracle: Oracle):
        self.star, self.oracle, self.clock = star, oracle, star.clock
        self.path = SlowestPath()
        self.calls = 0
        self.start = float("nan"), float("nan")  # f(x^0) and |grad f(x^0)|^2
        self._busy = [0.0] * (len(PARALLEL) + 2)
        bad = None if star.attack is None else star.attack.bad(star.n)
        self._good = None if bad is None else ~bad[star.first : star.first + star.m]
        self._count = star.n if bad is None else star.n - int(bad.sum())

    def row(
        self,
        k: int,
        x: np.ndarray,
        signal: int,
        checkpoint: bool,
        reference: tuple[np.ndarray, float] | None = None,
    ) -> Evaluation:
        """The row of x^k. Collective; only rank 0's ``checkpoint`` counts. Leaves EVALUATE on.

        reference : x* and f(x*), where they are known
        """
        star = self.star
        exact, losses, gradients = self._on_this_rank(x)
        d = gradients.shape[1]
        busy, waited_for = self._busy_since_last()
        message = np.zeros(d + TOTALS.itemsize // 8)
        gradient, totals = message[:d], message[d:].view(TOTALS)[0]

        def fold(_: np.ndarray) -> None:
            add_rows(gradient, gradients)
            loss = float(totals["loss"])
            for f_i in losses.tolist():
                loss += f_i
            totals["loss"] = loss
            totals["oracle_calls"] += self.oracle.calls
            totals["signal"] = totals["signal"] or signal
            totals["longest"] = max(totals["longest"], waited_for)
            if star.is_server:
                totals["checkpoint"], totals["bits"] = checkpoint, star.ledger.counts[0]
            if sum(busy) > totals["slowest"].sum():
                totals["slowest"] = busy

        star.relay(message, fold)
        f, grad = exact or (float(totals["loss"]) / self._count, gradient / self._count)
        self.calls = int(totals["oracle_calls"])
        bits = star.ledger.totals  # exact; the message's floats are so up to 2^53
        if star.is_server:
            longest, slowest = float(totals["longest"]), totals["slowest"].tolist()
            self.path.add(self.clock.seconds, slowest, longest - waited_for)
        else:
            bits = dict(zip(BITS, map(int, totals["bits"].tolist()), strict=True))
        row: Row = {"round": k, "loss": f, "grad_norm_sq": float(dot(grad, grad))}
        if k == 0:
            self.start = row["loss"], row["grad_norm_sq"]
        if reference is not None:
            x_star, f_star = reference
            away = to_host(x) - x_star
            row |= {"suboptimality": f - f_star, "distance_sq": float(dot(away, away))}
        row = {name: value if value == value else nan for name, value in row.items()}  # one NaN
        row |= bits
        row["oracle_calls"] = self.calls
        row.update(zip(SECONDS, self.path.seconds, strict=True))
        return Evaluation(row, int(totals["signal"]), bool(totals["checkpoint"]))

    def _on_this_rank(
        self, x: np.ndarray
    ) -> tuple[tuple[float, np.ndarray] | None, np.ndarray, np.ndarray]:
        """f and its gradient, if the problem gives them; else the losses (m,) and gradients (m, d)
        of this rank's workers that count."""
        if self._good is None and self.oracle.problem.explicit:
            return self.oracle.loss_and_gradient(x), np.empty(0), np.empty((0, 0))
        losses, gradients = self.oracle.evaluate(x)
        gradients = to_host(gradients)
        if self._good is not None:
            losses, gradients = losses[self._good], gradients[self._good]
        return None, losses, gradients

    def state(self) -> dict[str, Any]:
        """The costs until the last row, f(x^0) and |grad f(x^0)|^2, on rank 0."""
        return {"oracle_calls": self.calls, "seconds": self.path.seconds, "start": self.start}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned."""
        self.start = float(state["start"][0]), float(state["start"][1])
        # this start's set-up exchange repeats the one that was charged
        self.path.resume(state["seconds"].tolist(), self.clock.seconds)
        self._busy_since_last()
        self.oracle.restore(int(state["oracle_calls"]) if self.star.is_server else 0)

    def _busy_since_last(self) -> tuple[list[float], float]:
        """Seconds of this rank's `PARALLEL` phases since the last row, and how long others waited
        for it: without the gradients of that row's evaluation, but with what is not charged."""
        clock = self.clock
        now = [*(clock.seconds[phase] for phase in PARALLEL), self.oracle.credited, clock.delayed]
        steps = [after - before for after, before in zip(now, self._busy, strict=True)]
        self._busy, (*busy, credited, delayed) = now, steps
        return busy, sum(busy) - credited + delayed
