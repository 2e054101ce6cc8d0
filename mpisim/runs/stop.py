"""What ends a run before ``run.rounds``: the table ``[run.stop]``, and divergence."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np

from mpisim.core.schema import build, require

COSTS = ("bits_up", "paper_bits_up", "oracle_calls")  # per worker, as on the axes of figures
OF_REFERENCE = ("suboptimality", "distance_sq")
GRADIENT, DIVERGENCE = "grad_norm_sq", "divergence"
GROWTH = 1e30  # of the loss, which no run comes back from


@dataclasses.dataclass(frozen=True)
class Stop:
    """A run ends with the first logged row that meets a condition, whichever comes first.

    Costs and accuracies have the names of their columns. A cost is met where a worker's share of
    the column, its mean over the workers, is at least the number; an accuracy where the column is
    at most the number.
    ``divergence`` is met where |grad f(x^k)|^2 is more than so many times |grad f(x^0)|^2.
    """

    bits_up: float | None = None
    paper_bits_up: float | None = None
    oracle_calls: float | None = None
    grad_norm_sq: float | None = None
    suboptimality: float | None = None
    distance_sq: float | None = None
    loss: float | None = None
    divergence: float | None = None

    def __post_init__(self) -> None:
        for name, bound in self.conditions.items():
            key = f"run.stop.{name}"
            if name in COSTS:
                require(bound > 0 and isfinite(bound), key, bound, "a number > 0")
            elif name == "loss":
                require(isfinite(bound), key, bound, "a finite number")
            elif name == DIVERGENCE:
                require(bound > 1 and isfinite(bound), key, bound, "a number > 1")
            else:
                require(bound >= 0 and isfinite(bound), key, bound, "a number >= 0")

    @cached_property
    def conditions(self) -> dict[str, float]:
        """The numbers that are given, by column."""
        return {
            name: bound for name, bound in dataclasses.asdict(self).items() if bound is not None
        }

    @property
    def accuracies(self) -> list[str]:
        """The conditions that say how close a run got."""
        return [name for name in self.conditions if name not in (*COSTS, DIVERGENCE)]

    def met(self, row: Mapping[str, float], n: int, start: float) -> str:
        """The first condition that a row meets, by its key; empty if it meets none.

        row : values by column; n : workers; start : |grad f(x^0)|^2
        """
        keys = self.conditions
        return next((key for key in keys if self._meets(key, row, n, start)), "")

    def first_row(self, columns: Mapping[str, np.ndarray] | np.ndarray, n: int) -> int | None:
        """The first row that meets a condition; None if there is none.

        columns : arrays of shape (rows,), or an array with fields, by name; n : workers
        """
        if not self.conditions or not len(columns[GRADIENT]):
            return None
        start = columns[GRADIENT][0]
        met = np.any([self._meets(key, columns, n, start) for key in self.conditions], axis=0)
        return int(np.argmax(met)) if met.any() else None

    def _meets(self, key: str, row: Any, n: int, start: float) -> Any:
        """Whether a row meets a condition; for arrays by column, whether each row does."""
        bound = self.conditions[key]
        values = np.asarray(row[GRADIENT if key == DIVERGENCE else key], np.float64)
        if key in COSTS:
            return values / n >= bound
        return values > bound * start if key == DIVERGENCE else values <= bound


def diverges(row: Mapping[str, float], start: float) -> bool:
    """Whether a run has diverged at a row.

    It has if the loss, |grad f|^2, or a distance to the minimiser is not finite, or if |f(x^k)| is
    more than `GROWTH` times |f(x^0)|, or than `GROWTH` where |f(x^0)| is below 1.

    row : values by column; start : f(x^0)
    """
    names = ("loss", GRADIENT, *OF_REFERENCE)
    finite = all(isfinite(row[name]) for name in names if name in row)
    return not (finite and abs(row["loss"]) <= GROWTH * max(1.0, abs(start)))


def stop_of(config: Mapping[str, Any]) -> Stop:
    """The conditions in an experiment's tables; `InputError` where they cannot be any."""
    return build(Stop, config["run"].get("stop", {}), "run.stop")
