"""Figures 4 to 8: the relative error |x^k - x*|^2 / |x^0 - x*|^2 of ten schemes.

It is drawn over rounds, over megabytes that all workers sent together, and over seconds. What is
sent before round 0 counts in the latter two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mpisim.analysis import labels, panels, style
from mpisim.analysis.curves import ROUNDS, Axis, Named
from mpisim.analysis.study import data_sets, grouped
from mpisim.runs.log.reader import Log

ORDER = ("svmguide3", "german.numer", "covtype", "splice", "a9a", "w8a")  # as d grows
DISTANCE = "distance_sq"
MEGABYTE = 8e6  # bits
# What stands in the paper's legends for a compressor and its steps.
SCHEMES = {
    ("qsgd", ""): "quant",
    ("block-quant", ""): "block quant",
    ("block-quant-plus", "fixed"): "block quant",
    ("block-quant-plus", "root"): "block quant+",
    ("quant-plus", "fixed"): "quant",
    ("quant-plus", "varying"): "quant+",
    ("rand-tau-plus", ""): "rand-τ+",
}
CODECS = {"elias": "Elias omega", "e1": "Appendix E.1", "entropy": "entropy coder"}
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

RATIO = r"$\|x^k - x^\star\|^2 / \|x^0 - x^\star\|^2$"
ERROR = Named(DISTANCE, log=True, text=RATIO, of=lambda distance: distance / distance[0])
SENT = "megabytes sent, all workers"  # payload
BYTES = Named("bits_up", log=True, text=SENT, of=lambda bits: bits / MEGABYTE)
SECONDS = Axis("seconds", log=True)
SPENT: dict[Axis, str] = {BYTES: "megabytes", SECONDS: "seconds"}
COSTS = {ROUNDS: "rounds"} | SPENT

Found = dict[tuple, list[Log]]


def label(log: Log) -> str:
    """The paper's name for a run: ``DIANA+ (quant+)``."""
    table = log.config["compressor"]
    inner = table.get("inner", table)
    scheme = SCHEMES.get((inner["name"], inner.get("steps", "")), labels.compressor(inner))
    plus = "+" * (table["name"] == "smooth")
    return f"{labels.method(str(log.config['method']['name']))}{plus} ({scheme})"


def runs(logs: Sequence[Log]) -> Found:
    """{(data, label): logs}, data sets in the order of the figures."""
    return grouped(logs, lambda log: (str(log.config["problem"]["data"]), label(log)), ORDER)


def dimension(found: Found, data: str) -> int:
    """d of a data set."""
    return next(int(logs[0].attrs["dimension"]) for (n, _), logs in found.items() if n == data)


def draw(title: str, shown: Sequence[str], logs: Sequence[Log]) -> Any:
    """A column for each data set; over rounds, megabytes and seconds."""
    found = runs(logs)
    names = data_sets(found)

    def fill(panel: Any, cost: Axis, data: str) -> None:
        for curve in shown:
            if (data, curve) in found:
                panels.curve(panel, found[data, curve], cost, ERROR, *LOOKS[curve])
        panels.dress(panel, cost, ERROR, cost.label(logs[0]))

    return panels.matrix(
        list(COSTS),
        names,
        fill,
        labels=[RATIO] * len(COSTS),
        titles=[f"{name}, d = {dimension(found, name)}" for name in names],
        entries=panels.entries_of({curve: LOOKS[curve] for curve in shown}),
        title=title,
    )
