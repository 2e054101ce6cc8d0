"""Columns that ``run.columns`` adds to a log, and those of problems with a test set.

A new metric is a class with the decorator `metric`; its columns come last.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import ClassVar, cast

import numpy as np
from numba import njit

from mpisim.comm.star import Star
from mpisim.comm.upload import Upload
from mpisim.core.lanes import dot
from mpisim.core.lazy_rows import LazyRows, row_blocks
from mpisim.core.ordered_sums import add_rows
from mpisim.methods.oracle import LazyGradients
from mpisim.problems.base import Problem, ProblemWithTestSet
from mpisim.runs.log.schema import Column

METRICS: dict[str, type[Metric]] = {}


def metric(name: str):
    """Class decorator: makes a metric known under ``name`` in ``run.columns``."""

    def register(cls):
        METRICS[name] = cls
        return cls

    return register


class Metric(ABC):
    """Some columns of ``/rounds``, whose time is not in the log's clocks."""

    columns: ClassVar[list[Column]]

    def __init__(self, star: Star, problem: Problem, logged: Callable[[int], bool]):
        self.star, self.problem, self.logged = star, problem, logged

    @abstractmethod
    def values(self, x: np.ndarray) -> tuple[float, ...]:
        """The values in the row of x^k, after `losses_and_gradients` there. Collective.

        Rank 0's values are written.
        """

    def passed(self, x: np.ndarray) -> None:  # noqa: B027
        """Called with every x^k (d,), logged or not, after its row and before its round."""

    def up(self, v: np.ndarray | LazyRows, upload: Upload) -> None:  # noqa: B027
        """Called when this rank's workers have compressed v (senders, d)."""

    def down(self, v: np.ndarray, decoded: np.ndarray) -> None:  # noqa: B027
        """Called at the server when it has compressed v (d,) for all."""


@metric("pi")
class Pi(Metric):
    """pi of Assumption 4.1 of CD-Adam's paper, measured: |C(v) - v|^2 / |v|^2 (0 for v = 0).

    Row k has the values of round k - 1; NaN if nothing was compressed in it.
    """

    columns: ClassVar[list[Column]] = [
        ("pi_up", np.float64, "1", "|C(v) - v|^2 / |v|^2 of round k - 1, mean over its senders"),
        ("pi_up_max", np.float64, "1", "|C(v) - v|^2 / |v|^2 of round k - 1, largest of a sender"),
        ("pi_down", np.float64, "1", "|C(v) - v|^2 / |v|^2 of round k - 1, at the server"),
    ]

    def __init__(self, star: Star, problem: Problem, logged: Callable[[int], bool]):
        super().__init__(star, problem, logged)
        self._forget()

    def _forget(self) -> None:
        self.pi_i, self.pi = np.full(self.star.m, np.nan), np.nan
        self.round = self.star.round

    def _due(self) -> bool:
        """Whether this round's values are written; forgets those of an earlier round."""
        if self.round != self.star.round:
            self._forget()
        return self.logged(self.star.round + 1)

    def up(self, v: np.ndarray | LazyRows, upload: Upload) -> None:
        if self._due():
            rows = v.dense() if isinstance(v, LazyRows) else v
            self.pi_i[upload.draw.members] = _losses(rows, upload.decoded())

    def down(self, v: np.ndarray, decoded: np.ndarray) -> None:
        if self._due():
            self.pi = _losses(v[None], decoded[None])[0]

    def values(self, x: np.ndarray) -> tuple[float, ...]:
        if self.round != self.star.round - 1:
            self._forget()
        pi_i = self.star.gather_workers(self.pi_i)
        sent = self.pi_i[:0] if pi_i is None else pi_i[~np.isnan(pi_i)]
        mean, largest = (float(sent.mean()), float(sent.max())) if sent.size else (np.nan,) * 2
        return mean, largest, float(self.pi)


@metric("adaptive")
class Adaptive(Metric):
    """(L_+^t)^2 and (L_±^t)^2 of the last step, as the PermK paper's A.8.2 measures them.

    With D_i = grad f_i(x^k) - grad f_i(x^{k-1}): the mean of |D_i|^2 and the mean of
    |D_i - mean D|^2, both over |x^k - x^{k-1}|^2, so that row k has t = k - 1. NaN in row 0, and if
    x did not move. Each logged row computes the gradients at both points.
    """

    columns: ClassVar[list[Column]] = [
        ("adaptive_L_plus_sq", np.float64, "1", "(L_+^t)^2 of the step from x^{k-1} to x^k"),
        ("adaptive_L_pm_sq", np.float64, "1", "(L_±^t)^2 of the step from x^{k-1} to x^k"),
    ]

    def __init__(self, star: Star, problem: Problem, logged: Callable[[int], bool]):
        super().__init__(star, problem, logged)
        self.last: np.ndarray | None = None

    def passed(self, x: np.ndarray) -> None:
        self.last = x

    def values(self, x: np.ndarray) -> tuple[float, ...]:
        if self.last is None:
            return np.nan, np.nan
        moved = (x - self.last).astype(np.float64)
        length = float(dot(moved, moved))
        change: np.ndarray | LazyRows
        if self.problem.explicit:
            change = LazyGradients(self.problem, x) - LazyGradients(self.problem, self.last)
        else:
            change = self.problem.gradients(x) - self.problem.gradients(self.last)

        def over_workers(total: np.ndarray, fold: Callable[..., None], *arguments) -> np.ndarray:
            def fold_own(total: np.ndarray) -> None:
                for _, rows in row_blocks(change):
                    fold(total, rows, *arguments)

            self.star.relay(total, fold_own)
            return total / self.star.n

        mean = over_workers(np.zeros(self.problem.d), add_rows)
        squares = over_workers(np.zeros(2), _spread, mean)
        plus, pm = (squares / length).tolist() if length > 0 else (np.nan, np.nan)
        return plus, pm


class Tests(Metric):
    """Columns of a problem with a test set, which are always logged."""

    columns: ClassVar[list[Column]] = [
        ("train_accuracy", np.float64, "1", "share of the training samples classified rightly"),
        ("test_loss", np.float64, "1", "mean loss on the test set at x^k"),
        ("test_accuracy", np.float64, "1", "share of the test samples classified rightly"),
        ("test_grad_norm_sq", np.float64, "1", "squared norm of the gradient of the test loss"),
    ]

    def values(self, x: np.ndarray) -> tuple[float, ...]:
        shares, gradients = cast(ProblemWithTestSet, self.problem).test(x)
        total = self.star.sum_over_workers(np.concatenate([shares, gradients], axis=1))
        gradient = total[shares.shape[1] :]
        return (*total[: shares.shape[1]].tolist(), float(dot(gradient, gradient)))


def metrics_of(
    star: Star, problem: Problem, names: Iterable[str], logged: Callable[[int], bool]
) -> list[Metric]:
    """The metrics called ``names``, in this order, and those of a test set.

    logged : whether x^k has a row in the log
    """
    kinds = [METRICS[name] for name in names] + [Tests] * problem.tested
    return [kind(star, problem, logged) for kind in kinds]


@njit(cache=True)
def _losses(v, decoded):
    """|decoded_i - v_i|^2 / |v_i|^2 of each row, shape (m,), float64."""
    out = np.empty(v.shape[0])
    for i in range(v.shape[0]):
        lost = whole = 0.0
        for j in range(v.shape[1]):
            whole += np.float64(v[i, j]) ** 2
            lost += (np.float64(decoded[i, j]) - np.float64(v[i, j])) ** 2
        out[i] = lost / whole if whole > 0 else 0.0
    return out


@njit(cache=True)
def _spread(total, rows, mean):
    """total[0] += |row|^2, total[1] += |row - mean|^2, row by row."""
    for i in range(rows.shape[0]):
        square = away = 0.0
        for j in range(rows.shape[1]):
            value = np.float64(rows[i, j])
            square += value**2
            away += (value - mean[j]) ** 2
        total[0] += square
        total[1] += away
