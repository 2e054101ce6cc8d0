"""The ``[run.stop]`` table: what ends a run before ``run.rounds``."""

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


@dataclasses.dataclass(frozen=True)
class Stop:
    """A run ends with the first logged row that meets a condition, whichever comes first.

    The names are those of columns. A cost is met where a worker's share of the column, its mean
    over the workers, is at least the number; an accuracy where the column is at most the number.
    """

    bits_up: float | None = None
    paper_bits_up: float | None = None
    oracle_calls: float | None = None
    grad_norm_sq: float | None = None
    suboptimality: float | None = None
    distance_sq: float | None = None
    loss: float | None = None

    def __post_init__(self) -> None:
        for name, bound in self.conditions.items():
            key = f"run.stop.{name}"
            if name in COSTS:
                require(bound > 0 and isfinite(bound), key, bound, "a number > 0")
            elif name == "loss":
                require(isfinite(bound), key, bound, "a finite number")
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
        """The conditions that are no costs."""
        return [name for name in self.conditions if name not in COSTS]

    def met(self, row: Mapping[str, float], n: int) -> str:
        """The first condition that a row meets, by its column; empty if it meets none.

        row : values by column; n : workers
        """
        conditions = self.conditions.items()
        return next((name for name, bound in conditions if _meets(name, row[name], bound, n)), "")

    def first_row(self, columns: Mapping[str, np.ndarray] | np.ndarray, n: int) -> int | None:
        """The first row that meets a condition; None if there is none.

        columns : arrays of shape (rows,), or an array with fields, by name; n : workers
        """
        if not self.conditions:
            return None
        conditions = self.conditions.items()
        met = np.any([_meets(name, columns[name], bound, n) for name, bound in conditions], axis=0)
        return int(np.argmax(met)) if met.any() else None


def stop_of(config: Mapping[str, Any]) -> Stop:
    """The conditions in an experiment's tables; `InputError` where they cannot be any."""
    return build(Stop, config["run"].get("stop", {}), "run.stop")


def _meets(name: str, values: Any, bound: float, n: int) -> Any:
    """Whether a value meets a condition; for an array, each."""
    numbers = np.asarray(values, np.float64)
    return numbers / n >= bound if name in COSTS else numbers <= bound
