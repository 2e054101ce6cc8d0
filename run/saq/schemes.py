"""The runs of the grids: what the paper calls them, and the axes they are drawn and judged on."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from mpisim.analysis import labels
from mpisim.analysis.curves import ROUNDS, Axis, Named
from mpisim.analysis.study import grouped
from mpisim.runs.log.reader import Log

ORDER = ("svmguide3", "german.numer", "covtype", "splice", "a8a", "a9a", "w8a")  # as d grows
DISTANCE = "distance_sq"
MEGABYTE = 8e6  # bits
# What stands in the paper's legends for a compressor and its steps.
SCHEMES = {
    ("qsgd", ""): "quant",
    ("block-quant", ""): "block quant",
    ("block-quant-plus", "fixed"): "block quant",
    ("block-quant-plus", "root"): "block quant+",
    ("block-quant-plus", "stated"): "block quant+",
    ("block-quant-plus", "bound"): "block quant+",
    ("quant-plus", "fixed"): "quant",
    ("quant-plus", "varying"): "quant+",
    ("rand-tau-plus", ""): "rand-τ+",
}
CODECS = {"elias": "Elias omega", "e1": "Appendix E.1", "entropy": "entropy coder"}
RATIO = r"$\|x^k - x^\star\|^2 / \|x^0 - x^\star\|^2$"
ERROR = Named(DISTANCE, log=True, text=RATIO, of=lambda distance: distance / distance[0])
SENT = "megabytes sent, payload"
BYTES = Named("bits_up", log=True, text=SENT, of=lambda bits: bits / MEGABYTE)
SECONDS = Axis("seconds", log=True)


# Payload and framing, the words that tell the messages' lengths among it.
CROSSED = dataclasses.replace(BYTES, text="megabytes sent, with framing", framing=True)
SPENT: dict[Axis, str] = {BYTES: "megabytes", SECONDS: "seconds"}
COSTS = {ROUNDS: "rounds"} | SPENT

Groups = dict[tuple, list[Log]]


def label(log: Log) -> str:
    """``DIANA+ (quant+)``: the method and compressor of a log as in the paper's legends."""
    table = log.config["compressor"]
    inner = table.get("inner", table)
    scheme = SCHEMES.get((inner["name"], inner.get("steps", "")), labels.compressor(inner))
    if inner.get("blocks") == 1:
        scheme = scheme.removeprefix("block ")
    plus = "+" * (table["name"] == "smooth")
    return f"{labels.method(str(log.config['method']['name']))}{plus} ({scheme})"


def runs(logs: Sequence[Log], cost: Axis = ROUNDS) -> Groups:
    """{(data, label): logs}, data sets in the order of the figures.

    They are the runs with ranks of their own where ``cost`` is in seconds, else all others.
    """
    chosen = [log for log in logs if (log.config["run"].get("ranks") is not None) == cost.timed]
    return grouped(chosen, lambda log: (str(log.config["problem"]["data"]), label(log)), ORDER)


def dimension(groups: Iterable[Groups], data: str) -> int:
    """d of a data set."""
    logs = (chosen[0] for one in groups for (name, _), chosen in one.items() if name == data)
    return int(next(logs).attrs["dimension"])
