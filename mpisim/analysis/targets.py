"""The cost of reaching a target: rounds, bits and seconds of each log."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from mpisim.analysis import labels
from mpisim.analysis.curves import SENT, Axis
from mpisim.core.errors import InputError
from mpisim.runs.log.reader import Log

SECONDS = Axis("seconds", log=True)  # measured


@dataclasses.dataclass(frozen=True)
class Target:
    """A level for a column of the logs: reached in the first row with ``y`` <= level."""

    y: str
    level: float

    def __str__(self) -> str:
        return f"{self.y} ≤ {self.level:.6g}"


def parse(text: str, where: str = "--target") -> Target:
    """The target in a text such as ``grad_norm_sq=1e-3``; `InputError` says what is allowed."""
    y, _, level = text.partition("=")
    try:
        target = Target(y.strip(), float(level))
    except ValueError:
        target = Target("", math.nan)
    if not target.y or not math.isfinite(target.level):
        raise InputError(
            f"{where}: {text!r} is not allowed; it must be COLUMN=LEVEL, such as grad_norm_sq=1e-3"
        )
    return target


@dataclasses.dataclass(frozen=True)
class TargetCost:
    """What a run had spent in its first logged row with ``y`` <= target.

    name : method and compressor
    round : None where the run never reached the target
    bits_per_worker, seconds : bits up, payload unless they have framing, and the time, measured
        unless another clock counts it; NaN where the target was not reached
    last : ``y`` in the last row
    """

    name: str
    round: int | None
    bits_per_worker: float
    seconds: float
    last: float


def cost_to_reach(
    log: Log, target: float, y: str = "grad_norm_sq", clock: Axis = SECONDS, sent: Axis = SENT
) -> TargetCost:
    """The cost until column ``y`` first falls to ``target``.

    ``clock`` counts the seconds, and ``sent`` the bits.
    """
    values = log.column(y)
    if not values.size:
        raise InputError(f"{log.path}: the log has no row yet")
    name, last = name_of(log), float(values[-1])
    below = np.flatnonzero(values <= target)
    if below.size == 0:
        return TargetCost(name, None, np.nan, np.nan, last)
    row = below[0]
    bits, seconds = sent.values(log)[row], float(clock.values(log)[row])
    return TargetCost(name, int(log.columns["round"][row]), bits, seconds, last)


def name_of(log: Log) -> str:
    """Method and compressor."""
    names = labels.of_log(log.attrs)
    name = names.method(str(log.attrs["method"]))
    if log.config["compressor"]["name"] != "identity":
        name += " + " + names.compressor(log.config["compressor"])
    return name
