"""How smooth f looks along a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np
from numba import njit

from mpisim.core.arrays import METRIC, to_host
from mpisim.core.lanes import dot
from mpisim.core.lazy_rows import LazyRows, row_blocks
from mpisim.core.ordered_sums import add_rows
from mpisim.core.state import Shared
from mpisim.methods.oracle import LazyGradients
from mpisim.runs.log.schema import Column
from mpisim.runs.metrics.base import Metric, metric


@metric("adaptive")
class Adaptive(Metric):
    """(L_+^t)^2 and (L_±^t)^2 of the last step, as the PermK paper's A.8.2 measures them.

    With D_i = grad f_i(x^k) - grad f_i(x^{k-1}): the mean of |D_i|^2 and the mean of
    |D_i - mean D|^2, both over |x^k - x^{k-1}|^2, so that row k has t = k - 1. NaN in row 0, and if
    x did not move. Each logged row computes the gradients at both points.
    """

    columns: ClassVar[Sequence[Column]] = [
        ("adaptive_L_plus_sq", np.float64, "1", "(L_+^t)^2 of the step from x^{k-1} to x^k"),
        ("adaptive_L_pm_sq", np.float64, "1", "(L_±^t)^2 of the step from x^{k-1} to x^k"),
    ]

    last = Shared("x^{k-1}")

    def check(self) -> None:
        self.last = None

    def passed(self, x: np.ndarray) -> None:
        self.last = x

    def values(self, x: np.ndarray) -> tuple[float, ...]:
        if self.last is None:
            return np.nan, np.nan
        moved = to_host(x - self.last, METRIC).astype(np.float64)
        length = float(dot(moved, moved))
        change: np.ndarray | LazyRows
        if self.problem.explicit:
            change = LazyGradients(self.problem, x) - LazyGradients(self.problem, self.last)
        else:
            both = self.problem.gradients(x), self.problem.gradients(self.last)
            change = to_host(both[0] - both[1], METRIC)

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
