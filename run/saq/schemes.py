"""The runs of the grids: what the paper calls them, their axes, Figures 4 to 8, and break-even.

The figures show the relative error |x^k - x*|^2 / |x^0 - x*|^2 of ten schemes. It is drawn over
rounds, over megabytes that all workers sent together, as payload and with the framing that crossed,
too, and over seconds. What is sent before round 0 counts in all but the first. Seconds are those of
the runs with ranks of their own, all else is from the other runs.

Break-even is from where on a method of smoothness needs fewer bits than its rival. It sends the
smoothness matrices before round 0, S bits, and has to save them in rounds:

    R b - R_+ b_+ >= S,

R and R_+ being the rounds until the same error, and b and b_+ the bits of a round.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from mpisim.analysis import labels, panels, style
from mpisim.analysis.claims import number, pairs
from mpisim.analysis.curves import ROUNDS, Axis, Named
from mpisim.analysis.study import by_data, data_sets, grouped
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
RIVAL = "DIANA (quant)"
NAN = float("nan")

Groups = dict[tuple, list[Log]]
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


def first(groups: Groups, data: str) -> Log:
    """A run on a data set."""
    return next(logs[0] for (name, *_), logs in groups.items() if name == data)


@dataclasses.dataclass(frozen=True)
class Place:
    """The round of the rival, and its relative error."""

    round: float
    level: float

    def __str__(self) -> str:
        if np.isinf(self.round):
            return "never"
        error = "" if np.isnan(self.level) else f"at {number(self.level)}, "
        return f"{error}round {self.round:,.0f}"


@dataclasses.dataclass(frozen=True)
class BreakEven:
    """Medians over seeds; ``cost``: what both have spent where it was measured.

    ``measured`` is None where a run ended before, after ``rounds`` of the rival.
    """

    predicted: Place
    measured: Place | None
    cost: float
    rounds: int

    def numbers(self) -> dict[str, float | None]:
        """Rounds and errors for programs; None for what is not known."""
        points = {"predicted": self.predicted, "measured": self.measured or Place(NAN, NAN)}
        values = {f"{k}_{f}": v for k, p in points.items() for f, v in vars(p).items()}
        return {k: v if np.isfinite(v) else None for k, v in values.items()}

    def __str__(self) -> str:
        place = f"not in {self.rounds:,} rounds" if self.measured is None else str(self.measured)
        return f"break-even {place}\npredicted {self.predicted}"


def break_even(plus: Sequence[Log], rival: Sequence[Log], cost: Axis) -> BreakEven | None:
    """Of the runs on the seeds that both have; None without any."""
    both = pairs(plus, rival)
    if not both:
        return None
    points = [measured(a, b, cost) for a, b in both]
    reached = [one for one in points if one is not None]
    place = _median([at for at, _ in reached]) if len(reached) == len(points) else None
    spent = float(np.median([spent for _, spent in reached])) if place else NAN
    rounds = min(int(b.column("round")[-1]) for _, b in both)
    return BreakEven(_median([predicted(a, b, cost) for a, b in both]), place, spent, rounds)


def measured(plus: Log, rival: Log, cost: Axis) -> tuple[Place, float] | None:
    """The first row of the rival from which on ``plus`` got to each of its errors for less.

    With what the rival had spent there. Errors below all of ``plus`` do not count; None where
    ``plus`` is not ahead at the last one that does.
    """
    y, y_plus = (np.minimum.accumulate(ERROR.values(log)) for log in (rival, plus))
    new = (np.diff(y, prepend=np.inf) < 0) & (y >= y_plus[-1])  # errors not had before
    first = np.flatnonzero(new)
    spent = cost.values(rival)[first]
    needed = cost.values(plus)[np.searchsorted(-y_plus, -y[first])]
    behind = np.flatnonzero(needed > spent)
    ahead = int(behind[-1]) + 1 if behind.size else 0
    if ahead == len(first):
        return None
    at = first[ahead]
    return Place(float(rival.column("round")[at]), float(y[at])), float(spent[ahead])


def predicted(plus: Log, rival: Log, cost: Axis) -> Place:
    """As if rounds to an error were as one over the step: no round of the rival is needed.

    R_+ = R gamma / gamma_+, the bits of a round are means over the run, and the error is that of
    ``plus`` in round R_+ (NaN where it has fewer rounds).
    """
    ratio = float(rival.attrs["stepsize"]) / float(plus.attrs["stepsize"])
    b, b_plus = (each_round(log, cost) for log in (rival, plus))
    saved = b - ratio * b_plus
    before = float(cost.values(plus)[0] - cost.values(rival)[0])
    if saved <= 0:
        return Place(float("inf"), NAN)
    rounds = before / saved
    rows, errors = plus.column("round"), ERROR.values(plus)
    return Place(rounds, float(np.interp(rounds * ratio, rows, errors, right=NAN)))


def each_round(log: Log, cost: Axis) -> float:
    """Mean cost of a round, without what is sent before round 0."""
    values = cost.values(log)
    return float((values[-1] - values[0]) / log.column("round")[-1])


def _median(places: Sequence[Place]) -> Place:
    return Place(*(float(np.median([getattr(p, k) for p in places])) for k in ("round", "level")))


def draw(title: str, shown: Sequence[str], pair: Sequence[str], logs: Sequence[Log]) -> Any:
    """A column for each data set, a row for each cost that runs were made for.

    ``pair``: DIANA+ and its rival, whose break-even in megabytes is told; empty for none
    """
    groups = {cost: group for cost in DRAWN if (group := runs(logs, cost))}
    every = {key: logs for group in groups.values() for key, logs in group.items()}
    names = data_sets(by_data(every, ORDER))

    def fill(panel: Any, cost: Axis, data: str) -> None:
        here = {curve: group for curve in shown if (group := groups[cost].get((data, curve)))}
        for curve, group in here.items():
            panels.curve(panel, group, cost, ERROR, *LOOKS[curve])
        n = f", n = {next(iter(here.values()))[0].n}" if cost.timed and here else ""
        panels.dress(panel, cost, ERROR, cost.label(logs[0]) + n)
        if cost is ROUNDS and here:  # the rival of a break-even has more
            panel.set_xlim(
                right=min(cost.values(log)[-1] for group in here.values() for log in group)
            )
        if cost in (BYTES, CROSSED) and pair and set(pair) <= here.keys():
            plus, rival = pair
            _mark(panel, break_even(here[plus], here[rival], cost))

    rows, left = list(groups), [RATIO] * len(groups)
    titles = [f"{name}, d = {first(every, name).attrs['dimension']}" for name in names]
    entries = panels.entries_of({curve: LOOKS[curve] for curve in shown})
    return panels.matrix(
        rows, names, fill, labels=left, titles=titles, entries=entries, title=title
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
