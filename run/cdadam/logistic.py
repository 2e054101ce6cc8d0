"""Figures 2 and 4: AMSGrad with four ways of compressing, logistic regression."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from mpisim.analysis import labels, panels, style
from mpisim.analysis.claims import value_at
from mpisim.analysis.curves import ROUNDS, Axis, Named
from mpisim.analysis.study import by_data, data_sets
from mpisim.runs.log.reader import Log

from .equal_cost import BITS

ORDER = ("phishing", "mushrooms", "a9a", "w8a")
LOOKS: dict[str, tuple[str, Any]] = {
    "cd-adam": (style.COLOURS[0], "-"),
    "amsgrad": (style.COLOURS[1], (0, (4, 1.5))),
    "ef-amsgrad": (style.COLOURS[2], (0, (1, 1.2))),
    "naive-amsgrad": (style.COLOURS[3], (0, (5, 1.5, 1, 1.5))),
}
NORM = Named("grad_norm_sq", log=True, text="gradient norm", of=np.sqrt)

Found = dict[tuple, Log]  # {(data, method): run}


def runs(logs: Iterable[Log]) -> Found:
    """{(data, method): the run with the best step}, the one whose norm at the end is smallest."""
    best: Found = {}
    for log in logs:
        key = str(log.config["problem"]["data"]), str(log.attrs["method"])
        if key not in best or at_end(log) < at_end(best[key]):
            best[key] = log
    return by_data(best, ORDER)


def at_end(log: Log) -> float:
    """The gradient norm at the end: the median of the last tenth of the rows."""
    return value_at(log, NORM, ROUNDS, float("inf"))


def draw(logs: list[Log]) -> Any:
    """A column for each data set; over the bits sent both ways, and over the rounds."""
    found = runs(logs)
    names = data_sets(found)

    def fill(panel: Any, cost: Axis, data: str) -> None:
        for method in reversed(LOOKS):
            if (data, method) in found:
                panels.curve(panel, [found[data, method]], cost, NORM, *LOOKS[method])
        panels.dress(panel, cost, NORM, cost.label(logs[0]))

    return panels.matrix(
        (BITS, ROUNDS),
        names,
        fill,
        labels=[NORM.label(logs[0])] * 2,
        titles=names,
        entries=panels.entries_of({labels.method(method): look for method, look in LOOKS.items()}),
        title=f"ν = {nu_of(logs[0]):g}",
    )


def nu_of(log: Log) -> float:
    """nu of AMSGrad."""
    return float(log.config["method"]["nu"])
