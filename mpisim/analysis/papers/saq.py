"""What the figures of the smoothness-aware quantization paper (SAQ), Appendix B, have in common.

The relative error |x^k - x*|^2 / |x^0 - x*|^2 over rounds, over megabytes that all workers sent
together, and over seconds; what is sent before round 0 counts in the latter two.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mpisim.analysis import labels as words
from mpisim.analysis import panels, style
from mpisim.analysis.claims import Claim, fewer, needed, number
from mpisim.analysis.curves import Axis
from mpisim.runs.log.reader import Log

GRID = "saq"  # of Figures 4 to 8
SEEDS = "sweep.seeds=[{run={seed=1}}, {run={seed=2}}, {run={seed=3}}]"
LONG = ["run.rounds=5000", "run.log_every=10"]
SCALES: dict[str, list[str]] = {"quick": [SEEDS], "paper": LONG}
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


@dataclasses.dataclass(frozen=True)
class RelativeError(Axis):
    """|x^k - x*|^2 / |x^0 - x*|^2."""

    def values(self, log: Log) -> np.ndarray:
        distance = log.column(DISTANCE)
        return distance / distance[0]

    def label(self, log: Log) -> str:
        return r"$\|x^k - x^\star\|^2 / \|x^0 - x^\star\|^2$"


@dataclasses.dataclass(frozen=True)
class Megabytes(Axis):
    """Payload that all workers sent, in 10^6 bytes."""

    def values(self, log: Log) -> np.ndarray:
        return log.column("bits_up") / MEGABYTE

    def label(self, log: Log) -> str:
        return "megabytes sent, all workers"


@dataclasses.dataclass(frozen=True)
class Later(Axis):
    """An axis without what had been spent in row 0: the exchange before round 0."""

    of: Axis = dataclasses.field(kw_only=True)

    def values(self, log: Log) -> np.ndarray:
        values = self.of.values(log)
        return values - values[0]


ERROR = RelativeError(DISTANCE, log=True)
ROUNDS = Axis("round", log=False)
BYTES = Megabytes("bits_up", log=True)
SECONDS = Axis("seconds", log=True)
SPENT = {BYTES: "megabytes", SECONDS: "seconds"}
COSTS = {ROUNDS: "rounds"} | SPENT

Runs = dict[tuple[str, str], list[Log]]


def label(log: Log) -> str:
    """The paper's name for a run: ``DIANA+ (quant+)``."""
    table = log.config["compressor"]
    plus = table["name"] == "smooth"
    inner = table["inner"] if plus else table
    name = str(inner["name"])
    scheme = SCHEMES.get((name, inner.get("steps", "")), words.compressor(inner))
    return f"{words.method(str(log.config['method']['name']))}{'+' * plus} ({scheme})"


def runs(logs: Sequence[Log]) -> Runs:
    """{(data, label): logs}, data sets in the order of the figures."""
    found: Runs = {}
    for log in logs:
        found.setdefault((str(log.config["problem"]["data"]), label(log)), []).append(log)
    place = {name: i for i, name in enumerate(ORDER)}
    return {key: found[key] for key in sorted(found, key=lambda k: (place.get(k[0], 99), k[0]))}


def names(found: Runs) -> list[str]:
    """The data sets."""
    return list(dict.fromkeys(data for data, _ in found))


def dimension(found: Runs, data: str) -> int:
    """d of a data set."""
    return next(int(logs[0].attrs["dimension"]) for (n, _), logs in found.items() if n == data)


def draw(logs: Sequence[Log], labels: Sequence[str], title: str) -> Any:
    """A column for each data set; over rounds, megabytes and seconds."""
    found = runs(logs)
    with panels.styled():
        figure, grid = panels.grid(len(COSTS), len(names(found)))
        for row, cost in zip(grid, COSTS, strict=True):
            for panel, name in zip(row, names(found), strict=True):
                for curve in labels:
                    if (name, curve) in found:
                        panels.curve(panel, found[name, curve], cost, ERROR, *LOOKS[curve])
                panels.dress(panel, cost, ERROR, cost.label(logs[0]))
            row[0].set_ylabel(ERROR.label(logs[0]))
        for panel, name in zip(grid[0], names(found), strict=True):
            panel.set_title(f"{name}, d = {dimension(found, name)}")
        looks = [(curve, LOOKS[curve]) for curve in labels]
        entries = [(text, {"color": colour, "linestyle": dash}) for text, (colour, dash) in looks]
        panels.legend(figure, entries, title)
    return figure


def pairs(
    found: Runs, less: str, more: str, source: str, costs: dict[Axis, str] = COSTS
) -> Iterator[Claim]:
    """For each data set and cost, that ``less`` needs less than ``more`` to their common level."""
    for name in names(found):
        own = found.get((name, less), []), found.get((name, more), [])
        for cost, unit in costs.items():
            text = f"{name}, d = {dimension(found, name)}: {less} needs fewer {unit} than {more}"
            claim = fewer(text, source, *own, cost, DISTANCE)
            yield claim if cost is ROUNDS else _with_later(claim, *own, cost)


def _with_later(claim: Claim, less: list[Log], more: list[Log], cost: Axis) -> Claim:
    """The ratio without the exchange before round 0, too; in words where it turns the claim."""
    if "ratios" not in claim.details:
        return claim
    level, later = float(claim.details["level"]), Later(cost.name, log=cost.log, of=cost)
    low, high = (
        np.median([needed(log, later, level, DISTANCE) for log in logs]) for logs in (less, more)
    )
    ratio = float(high / low) if low > 0 else None
    measured = claim.measured
    if not claim.holds and ratio is not None and ratio > 1:
        measured += f"; without what is sent before round 0: {number(ratio)} times"
    details = claim.details | {"ratio_without_start": ratio}
    return dataclasses.replace(claim, measured=measured, details=details)


def together(
    found: Runs,
    less: str,
    more: str,
    source: str,
    words: str,
    which: Callable[[list[float]], bool],
    costs: dict[Axis, str] = COSTS,
) -> Iterator[Claim]:
    """A claim over all data sets, for each cost: ``which`` of the ratios of `pairs`, as d grows.

    A ratio that was not measured counts as 0.
    """
    for cost, unit in costs.items():
        ratios = {name: _ratio(found, name, less, more, cost) for name in names(found)}
        said = (f"{name} (d = {dimension(found, name)}) {number(r)}" for name, r in ratios.items())
        text = f"{less} needs fewer {unit} than {more} {words}"
        yield Claim(text, source, ", ".join(said), which([*ratios.values()]), {"ratios": ratios})


def _ratio(found: Runs, name: str, less: str, more: str, cost: Axis) -> float:
    own = found.get((name, less), []), found.get((name, more), [])
    return float(fewer("", "", *own, cost, DISTANCE).details.get("median_ratio", 0.0))


def when_larger(ratios: list[float]) -> bool:
    """Above 1 for the larger half of the data sets."""
    return bool(ratios) and min(ratios[(len(ratios) + 1) // 2 :] or ratios) > 1


def mostly(ratios: list[float]) -> bool:
    """Above 1 for more than half of the data sets."""
    return 2 * sum(r > 1 for r in ratios) > len(ratios)


def always(ratios: list[float]) -> bool:
    """Above 1 for every data set."""
    return bool(ratios) and min(ratios) > 1
