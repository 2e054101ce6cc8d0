"""Figures 2 and 4: AMSGrad with four ways of compressing, logistic regression."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from mpisim.analysis import labels, panels, style
from mpisim.analysis.curves import ROUNDS, Axis, Named
from mpisim.analysis.study import BestSteps, best_steps, by_data, data_sets
from mpisim.runs.log.reader import Log

from .equal_cost import BITS

ORDER = ("phishing", "mushrooms", "a9a", "w8a")
SIGN, TOP_1 = "scaled-sign", "topk"  # of Figure 2, of Figure 4
CDADAM, PLAIN, WORSE = "cd-adam", "amsgrad", ("ef-amsgrad", "naive-amsgrad")
LOOKS: dict[str, tuple[str, Any]] = {
    CDADAM: (style.COLOURS[0], "-"),
    PLAIN: (style.COLOURS[1], (0, (4, 1.5))),
    "ef-amsgrad": (style.COLOURS[2], (0, (1, 1.2))),
    "naive-amsgrad": (style.COLOURS[3], (0, (5, 1.5, 1, 1.5))),
}
NORM = Named("grad_norm_sq", log=True, text="gradient norm", of=np.sqrt)
SPREAD = "denominator_spread"

Groups = dict[tuple[str, float, str], BestSteps]  # by data set, nu and method


def best(logs: Iterable[Log], compressor: str, x: Axis = BITS) -> Groups:
    """The best step of each method, for each data set and nu.

    CD-Adam and uncompressed AMSGrad are tuned to the deepest target that both reach, for the least
    of x. The others stop above it: their smallest norm at the end decides.
    """
    compressed = [
        log for log in logs if log.config["compressor"]["name"] in (compressor, "identity")
    ]
    deep = [log for log in compressed if log.attrs["method"] not in WORSE]
    others = [log for log in compressed if log.attrs["method"] in WORSE]
    tuned = [*best_steps(deep, x, panel=_panel), *best_steps(others, x, targets=(), panel=_panel)]
    groups = {(*_panel(one.logs[0]), str(one.logs[0].attrs["method"])): one for one in tuned}
    return by_data(groups, ORDER)


def _panel(log: Log) -> tuple[str, float]:
    return str(log.config["problem"]["data"]), nu_of(log)


def nu_of(log: Log) -> float:
    """nu of AMSGrad."""
    return float(log.config["method"]["nu"])


def draw(compressor: str, logs: list[Log]) -> Any:
    """A column for each data set; over the bits sent both ways and over the rounds, for each nu."""
    groups = best(logs, compressor)
    names = data_sets(groups)
    rows = [(nu, x) for nu in sorted({nu for _, nu, _ in groups}) for x in (BITS, ROUNDS)]

    def fill(panel: Any, row: tuple[float, Axis], data: str) -> None:
        nu, x = row
        for method in reversed(LOOKS):
            if one := groups.get((data, nu, method)):
                label = f"α = {one.step:g}"
                panels.curve(panel, one.logs, x, NORM, *LOOKS[method], label=label)
        panels.dress(panel, x, NORM, x.label(logs[0]))
        side = "right" if x is ROUNDS else "left"  # where no curve is
        panel.legend(fontsize=6, loc=f"center {side}", handlelength=1.6)

    return panels.matrix(
        rows,
        names,
        fill,
        labels=[f"ν = {nu:g}: {NORM.label(logs[0])}" for nu, _ in rows],
        titles=names,
        entries=panels.entries_of({labels.method(method): look for method, look in LOOKS.items()}),
    )


def spread(one: BestSteps) -> float:
    """The largest ratio of two coordinates' denominators in a row, the median over the seeds."""
    return float(np.median([np.nanmax(log.column(SPREAD)) for log in one.logs]))
