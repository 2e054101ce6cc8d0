"""How far an estimate is from the gradients that it was made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from mpisim.core.arrays import METRIC, to_host
from mpisim.core.lanes import dot, sum_of
from mpisim.core.lazy_rows import LazyRows, row_blocks
from mpisim.core.ordered_sums import add_rows
from mpisim.core.state import AtServer, Shared
from mpisim.methods.optimizers import Moments
from mpisim.runs.log.schema import Column
from mpisim.runs.metrics.base import Metric, metric


@metric("estimates")
class Estimates(Metric):
    """Compression errors and the variance v, as in CD-Adam's paper, Section 4 and Lemmas B.5, B.6.

    g is the mean of the workers' gradients before compression, g^ what the server makes of their
    messages, and g~ what all workers decode and step with. Row k has the values of round k - 1. NaN
    where a method does not estimate the gradient in this way (DIANA, MARINA, 1-bit Adam after its
    warm-up), and for v without one.
    """

    columns: ClassVar[Sequence[Column]] = [
        ("error_up", np.float64, "1", "|g^ - g| of round k - 1: server against gradients"),
        ("error_down", np.float64, "1", "|g~ - g^| of round k - 1: workers against server"),
        ("v_mean", np.float64, "1", "mean of the coordinates of Adam's v before round k"),
        ("v_max", np.float64, "1", "largest coordinate of Adam's v before round k"),
    ]

    g = Shared("the mean gradient of the round in progress")
    errors = AtServer("of its estimates")
    round = AtServer("whose errors they are")

    def check(self) -> None:
        self.g, self.errors, self.round = None, (np.nan, np.nan), -1

    def fresh(self, g_i: np.ndarray | LazyRows) -> None:
        if not self.logged(self.star.round + 1):
            self.g = None
            return

        rows_of = to_host(g_i, METRIC)

        def fold(total: np.ndarray) -> None:
            for _, rows in row_blocks(rows_of):
                add_rows(total, rows)

        self.g = np.zeros(self.problem.d)
        self.star.relay(self.g, fold)
        self.g /= self.star.n

    def estimated(self, g_hat: np.ndarray, g: np.ndarray) -> None:
        if self.g is not None and self.star.is_server:
            g_hat, g = to_host(g_hat, METRIC), to_host(g, METRIC)
            self.errors = _distance(g_hat, self.g), _distance(g, g_hat)
            self.round = self.star.round
        self.g = None

    def values(self, x: np.ndarray) -> tuple[float, ...]:
        errors = self.errors if self.round == self.star.round - 1 else (np.nan, np.nan)
        v = self.optimizer.v if isinstance(self.optimizer, Moments) else np.nan
        v = np.atleast_1d(to_host(v, METRIC))
        return *errors, float(sum_of(v, v.size)) / v.size, float(v.max())


def _distance(a: np.ndarray, b: np.ndarray) -> float:
    away = a.astype(np.float64) - b
    return float(np.sqrt(dot(away, away)))
