"""The cost of reaching a target: rounds, bits and seconds of each log."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from mpisim.analysis import labels
from mpisim.analysis.oversubscription import note
from mpisim.runs.log.reader import Log, damaged, read_experiments


@dataclasses.dataclass(frozen=True)
class TargetCost:
    """What a run had spent in its first logged row with ``y`` <= target.

    name : method and compressor
    round : None where the run never reached the target
    bits_per_worker, seconds : payload bits up, and the time; NaN where it was not reached
    last : ``y`` in the last row
    """

    name: str
    round: int | None
    bits_per_worker: float
    seconds: float
    last: float


def cost_to_reach(log: Log, target: float, y: str = "grad_norm_sq") -> TargetCost:
    """The cost until column ``y`` first falls to ``target``."""
    values = log.column(y)
    name = labels.method(str(log.attrs["method"]))
    if log.config["compressor"]["name"] != "identity":
        name += " + " + labels.compressor(log.config["compressor"])
    below = np.flatnonzero(values <= target)
    if below.size == 0:
        return TargetCost(name, None, np.nan, np.nan, float(values[-1]))
    row = below[0]
    bits, seconds = log.column("bits_up")[row] / log.n, log.column("seconds")[row]
    return TargetCost(name, int(log.columns["round"][row]), bits, seconds, float(values[-1]))


def table(paths: list[Path], target: float, y: str = "grad_norm_sq") -> str:
    """The costs of several logs as a table in text."""
    lines = [f"{'':34}{'rounds':>8}{'kbit/worker':>14}{'seconds':>10}   until {y} <= {target:g}"]
    logs = read_experiments(paths)
    for log in logs:
        with damaged(log.path):
            c = cost_to_reach(log, target, y)
        if c.round is None:
            lines.append(f"{c.name:34}   not reached: ended at {c.last:.2g}")
        else:
            lines.append(f"{c.name:34}{c.round:8d}{c.bits_per_worker / 1e3:14.1f}{c.seconds:10.3f}")
    return "\n".join(filter(None, [*lines, note(logs)]))
