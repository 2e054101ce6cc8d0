"""What it took to reach a target: one line a log."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from mpisim.analysis import labels as words
from mpisim.runs.log.reader import Log, damaged, read_experiments


@dataclasses.dataclass(frozen=True)
class Reached:
    """The first logged row with ``y`` <= target: its round, bits up a worker, and seconds."""

    name: str
    round: int | None
    bits_per_worker: float
    seconds: float
    last: float


def reached(log: Log, target: float, y: str = "grad_norm_sq") -> Reached:
    """When a log first falls to ``target`` in column ``y``; round None if it never does."""
    values = log.column(y)
    name = words.method(str(log.attrs["method"]))
    if log.config["compressor"]["name"] != "identity":
        name += " + " + words.compressor(log.config["compressor"])
    below = np.flatnonzero(values <= target)
    if below.size == 0:
        return Reached(name, None, np.nan, np.nan, float(values[-1]))
    row = below[0]
    bits, seconds = log.column("bits_up")[row] / log.n, log.column("seconds")[row]
    return Reached(name, int(log.columns["round"][row]), bits, seconds, float(values[-1]))


def table(paths: list[Path], target: float, y: str = "grad_norm_sq") -> str:
    """The table for several logs, as text."""
    lines = [f"{'':34}{'rounds':>8}{'kbit/worker':>14}{'seconds':>10}   until {y} <= {target:g}"]
    for log in read_experiments(paths):
        with damaged(log.path):
            r = reached(log, target, y)
        if r.round is None:
            lines.append(f"{r.name:34}   not reached: ended at {r.last:.2g}")
        else:
            lines.append(f"{r.name:34}{r.round:8d}{r.bits_per_worker / 1e3:14.1f}{r.seconds:10.3f}")
    return "\n".join(lines)
