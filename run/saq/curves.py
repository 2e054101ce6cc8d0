"""Figures 4 to 8: the relative error |x^k - x*|^2 / |x^0 - x*|^2 of ten schemes.

It is drawn over rounds, over megabytes that all workers sent together, as payload and with the
framing that crossed, too, and over seconds. What is sent before round 0 counts in all but the
first. Seconds are those of the runs with ranks of their own, all else is from the other runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mpisim.analysis import panels, style
from mpisim.analysis.curves import ROUNDS, Axis
from mpisim.analysis.study import by_data, data_sets
from mpisim.runs.log.reader import Log

from .schemes import (
    BYTES,
    CROSSED,
    ERROR,
    ORDER,
    RATIO,
    SECONDS,
    BreakEven,
    break_even,
    dimension,
    runs,
)

SOLID, DASHED, DOTTED = "-", (0, (4, 1.5)), (0, (1, 1.2))
LOOKS: dict[str, tuple[str, Any]] = {
    "DCGD (quant)": (style.COLOURS[3], DASHED),
    "DIANA (quant)": (style.COLOURS[6], SOLID),
    "DIANA (block quant)": (style.COLOURS[4], SOLID),
    "DCGD+ (block quant+)": (style.COLOURS[5], DASHED),
    "DIANA+ (block quant)": (style.COLOURS[3], SOLID),
    "DIANA+ (block quant+)": (style.COLOURS[1], SOLID),
    "DCGD+ (quant+)": (style.COLOURS[2], DASHED),
    "DIANA+ (quant)": (style.COLOURS[4], DASHED),
    "DIANA+ (quant+)": (style.COLOURS[0], SOLID),
    "DIANA+ (rand-τ+)": (style.COLOURS[2], DOTTED),
}

DRAWN = (ROUNDS, BYTES, CROSSED, SECONDS)


def draw(title: str, shown: Sequence[str], pair: Sequence[str], logs: Sequence[Log]) -> Any:
    """A column for each data set, a row for each cost that runs were made for.

    ``pair``: DIANA+ and its rival, whose break-even in megabytes is told; empty for none
    """
    groups = {cost: group for cost in DRAWN if (group := runs(logs, cost))}
    names = data_sets(by_data({key: None for group in groups.values() for key in group}, ORDER))

    def fill(panel: Any, cost: Axis, data: str) -> None:
        here = {curve: group for curve in shown if (group := groups[cost].get((data, curve)))}
        for curve, group in here.items():
            panels.curve(panel, group, cost, ERROR, *LOOKS[curve])
        panels.dress(panel, cost, ERROR, cost.label(logs[0]))
        if cost is ROUNDS and here:  # the rival of a break-even has more
            panel.set_xlim(
                right=min(cost.values(log)[-1] for group in here.values() for log in group)
            )
        if cost in (BYTES, CROSSED) and pair and set(pair) <= here.keys():
            plus, rival = pair
            _mark(panel, break_even(here[plus], here[rival], cost))

    return panels.matrix(
        list(groups),
        names,
        fill,
        labels=[RATIO] * len(groups),
        titles=[f"{name}, d = {dimension(groups.values(), name)}" for name in names],
        entries=panels.entries_of({curve: LOOKS[curve] for curve in shown}),
        title=title,
    )


def _mark(panel: Any, place: BreakEven | None) -> None:
    """Where both have spent as much, in words and as a point."""
    if place is None:
        return
    look: dict[str, Any] = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1}
    where = {"transform": panel.transAxes, "bbox": look}
    for remark in list(panel.texts):  # on framing, which has a row of its own
        remark.remove()
    panel.text(0.03, 0.03, str(place), fontsize=6.5, color=style.GREY, **where)
    if place.measured:
        panel.plot(place.cost, place.measured.level, "o", color="black", markersize=4)
