"""Seconds of a run until |grad f|^2 is 1e-4 of its start, on drawn fleets."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from mpisim.analysis import labels
from mpisim.analysis.fleet.seconds import FleetSeconds
from mpisim.analysis.study import value_of
from mpisim.comm.fleet import Fleet
from mpisim.runs.log.reader import Log

TARGET = 1e-4
DRAWS = 20
COUNTRIES = ("US", "DE", "BR", "IN", "world")
UP, SIGMA = (
    ("30kbit/150kbit", "300kbit/1500kbit", "3mbit/15mbit", "30mbit/150mbit"),
    (0.0, 0.5, 1.0, 1.5),
)
# Seconds of a sample on the median phone: of 14 features, and of a million weights.
SAMPLE = {"a9a": 1e-5, "million": 0.1}
METHODS = (
    *("gd", "marina", "diana", "ef21", "ef21-2way", "dasha", "fedavg", "scaffnew", "shadowheart"),
)


def problem_of(log: Log) -> str:
    """``a9a`` or ``million``."""
    return "million" if log.config["problem"]["name"] == "diagonal" else "a9a"


def fleet(problem: str, links: str, sigma: float = 0.0) -> Fleet:
    """Phones with these links."""
    return Fleet(links, sigma=sigma, devices="phones", seconds=SAMPLE[problem])


def name(method: str) -> str:
    """For figures."""
    return labels.method(method)


def row(log: Log) -> int | None:
    """The first row at the target; None without one."""
    values = log.column("grad_norm_sq")
    there = np.flatnonzero(values <= TARGET * values[0])
    return int(there[0]) if there.size else None


def seconds(log: Log, one: Fleet, seed: int) -> float:
    """Until the target on the fleet of a seed; infinity for a run that does not get there."""
    at = row(log)
    if at is None:
        return float("inf")
    return float(FleetSeconds("seconds", True, fleet=one, seed=seed).values(log)[at])


@dataclasses.dataclass(frozen=True)
class Times:
    """Of a method on a fleet: {seed of the fleet: seconds}, with the best of the steps tried.

    edge : whether the best step is the first or the last of several
    """

    method: str
    seconds: dict[int, float]
    edge: bool = False

    @property
    def median(self) -> float:
        """Of the seconds."""
        return float(np.median(list(self.seconds.values())))


def times(logs: Sequence[Log], problem: str, links: str, sigma: float = 0.0) -> list[Times]:
    """Of all methods that have run on the problem, in the order of `METHODS`."""
    methods = []
    for method in METHODS:
        its_logs = [
            log for log in logs if problem_of(log) == problem and log.attrs["method"] == method
        ]
        if method == "shadowheart":
            table = {
                int(value_of(log, "fleet.seed") or 1): _simulated(log)
                for log in its_logs
                if log.config["fleet"]["links"] == links
                and (value_of(log, "fleet.sigma") or 0.0) == sigma
            }
            methods += [Times(method, table)] if table else []
            continue
        steps: dict[float, list[Log]] = {}
        for log in its_logs:
            steps.setdefault(float(log.attrs["stepsize"]), []).append(log)
        one, tried = fleet(problem, links, sigma), []
        for step in sorted(steps):
            runs = steps[step]
            drawn = {j: seconds(runs[j % len(runs)], one, j) for j in range(1, DRAWS + 1)}
            tried.append(Times(method, drawn))
        if tried:
            best = min(range(len(tried)), key=lambda i: tried[i].median)
            edge = len(tried) > 1 and best in (0, len(tried) - 1)
            methods.append(dataclasses.replace(tried[best], edge=edge))
    return methods


def _simulated(log: Log) -> float:
    at = row(log)
    return float("inf") if at is None else float(log.columns["simulated_seconds"][at])
