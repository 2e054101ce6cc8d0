"""The cost of reaching a target: rounds, bits and seconds of each log."""

from __future__ import annotations

import dataclasses
import math
import re

import numpy as np

from mpisim.analysis import labels
from mpisim.analysis.curves import SENT, Axis, grows
from mpisim.core.errors import InputError
from mpisim.runs.log.reader import Log

SECONDS = Axis("seconds", log=True)  # measured
FORM = re.compile(r"\s*(?P<y>[^<>=\s]+)\s*(?P<sign><=|>=|=)\s*(?P<level>[^<>=\s]+)\s*")


@dataclasses.dataclass(frozen=True)
class Target:
    """A level for a column of the logs, reached in the first row with ``y`` <= level.

    With ``rises`` in the first one with ``y`` >= level.
    """

    y: str
    level: float
    rises: bool = False

    def __str__(self) -> str:
        return f"{self.y} {'≥' if self.rises else '≤'} {self.level:.6g}"

    def met(self, values: np.ndarray) -> np.ndarray:
        """Whether each row meets it, shape (rows,)."""
        return values >= self.level if self.rises else values <= self.level


def parse(text: str, where: str = "--target") -> Target:
    """The target in a text: ``grad_norm_sq<=1e-3``, or ``test_accuracy=0.9``.

    With ``=`` the column has its own direction: accuracies rise, all others fall. What a run spends
    grows in any case, and can only be at least a level. `InputError` says what is allowed.
    """
    found = FORM.fullmatch(text)
    try:
        level = float(found["level"]) if found else math.nan
    except ValueError:
        level = math.nan
    if found is None or not math.isfinite(level):
        raise InputError(
            f"{where}: {text!r} is not allowed; it must be COLUMN=LEVEL, COLUMN<=LEVEL or"
            " COLUMN>=LEVEL, such as grad_norm_sq=1e-3"
        )
    y, sign = found["y"], found["sign"]
    if grows(y) and sign != ">=":
        raise InputError(
            f"{where}: {text!r} is not allowed; {y} grows with the rounds: it must be"
            f" {y}>={found['level']}, or a target of a column that falls, such as grad_norm_sq=1e-3"
        )
    return Target(y, level, sign == ">=" or (sign == "=" and "accuracy" in y))


@dataclasses.dataclass(frozen=True)
class TargetCost:
    """What a run had spent in its first logged row that meets a target.

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


def cost_to_reach(log: Log, target: Target, clock: Axis = SECONDS, sent: Axis = SENT) -> TargetCost:
    """The cost until the first row that meets the target.

    ``clock`` counts the seconds, and ``sent`` the bits.
    """
    values = log.column(target.y)
    if not values.size:
        raise InputError(f"{log.path}: the log has no row yet")
    name, last = name_of(log), float(values[-1])
    met = np.flatnonzero(target.met(values))
    if met.size == 0:
        return TargetCost(name, None, np.nan, np.nan, last)
    row = met[0]
    bits, seconds = sent.values(log)[row], float(clock.values(log)[row])
    return TargetCost(name, int(log.columns["round"][row]), bits, seconds, last)


def name_of(log: Log) -> str:
    """Method and compressor."""
    names = labels.of_log(log.attrs)
    name = names.method(str(log.attrs["method"]))
    if log.config["compressor"]["name"] != "identity":
        name += " + " + names.compressor(log.config["compressor"])
    return name
