"""MARINA, Figure 1: MARINA against DIANA, VR-MARINA against VR-DIANA; RandK, non-convex loss."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from mpisim.analysis import labels as words
from mpisim.analysis import panels, style
from mpisim.analysis.claims import Claim, fewer, needed, ordered
from mpisim.analysis.curves import Axis, Epochs
from mpisim.runs.log.reader import Log

SCALES: dict[str, list[str]] = {
    "quick": [],
    "paper": ["run.rounds=40000", "run.log_every=10"],
}
ORDER = ("mushrooms", "w8a", "a9a", "phishing", "madelon", "duke", "gisette")
# The paper's red, blue and green, in shades that every eye tells apart.
COLOURS = {1: style.COLOURS[1], 5: style.COLOURS[0], 10: style.COLOURS[2]}
DASHES = {"marina": "-", "vr-marina": "-", "diana": (0, (4, 1.5)), "vr-diana": (0, (4, 1.5))}
WIRE_BITS = 32


@dataclasses.dataclass(frozen=True)
class LaterBits(Axis):
    """bits_up per worker without the 32 d bits of MARINA's g^0, which its own code leaves out."""

    def values(self, log: Log) -> np.ndarray:
        return np.maximum(super().values(log) - WIRE_BITS * int(log.attrs["dimension"]), 0)


ROUNDS, BITS = Axis("round", log=False), Axis("bits_up", log=False)
EPOCHS, LATER_BITS = Epochs("epochs", log=False), LaterBits("bits_up", log=False)
GRADIENT = Axis("grad_norm_sq", log=True)
# (less, more, cost): the rows of panels, top to bottom; row 1 of the paper is the first two.
ROWS = (
    ("marina", "diana", ROUNDS),
    ("marina", "diana", BITS),
    ("vr-marina", "vr-diana", EPOCHS),
    ("vr-marina", "vr-diana", BITS),
)
COSTS = {ROUNDS: "rounds", EPOCHS: "sample gradients", BITS: "bits"}

Runs = dict[tuple[str, int, str], list[Log]]


def runs(logs: list[Log]) -> Runs:
    """{(data, K, method): logs}, data sets in the order of the figure."""
    found: Runs = {}
    for log in logs:
        config = log.config
        name = str(config["problem"]["data"])
        key = (name, int(config["compressor"]["k"]), str(config["method"]["name"]))
        found.setdefault(key, []).append(log)
    place = {name: i for i, name in enumerate(ORDER)}
    return {key: found[key] for key in sorted(found, key=lambda k: (place.get(k[0], 99), k))}


def draw(logs: list[Log]) -> Any:
    """A column for each data set; the paper's two rows take two rows of panels each."""
    found = runs(logs)
    names = list(dict.fromkeys(data for data, _, _ in found))
    with panels.styled():
        figure, grid = panels.grid(len(ROWS), len(names))
        for row, (less, more, cost) in zip(grid, ROWS, strict=True):
            for panel, name in zip(row, names, strict=True):
                _panel(panel, found, name, (less, more), cost)
            row[0].set_ylabel(
                f"{words.method(less)} vs {words.method(more)}\n{GRADIENT.label(logs[0])}"
            )
        for panel, name in zip(grid[0], names, strict=True):
            panel.set_title(name)
        panels.legend(figure, _legend(found))
    return figure


def _panel(panel: Any, found: Runs, name: str, methods: tuple[str, str], cost: Axis) -> None:
    own = [key for key in found if key[0] == name and key[2] in methods]
    for key in sorted(own, key=lambda key: -key[1]):  # over the bits, small K are short: on top
        _, k, method = key
        panels.curve(panel, found[key], cost, GRADIENT, COLOURS.get(k, "black"), DASHES[method])
    if own:
        panels.dress(panel, cost, GRADIENT, cost.label(found[own[0]][0]))


def _legend(found: Runs) -> list[tuple[str, dict[str, Any]]]:
    counts = sorted({k for _, k, _ in found})
    methods = [("(VR-)MARINA", DASHES["marina"]), ("(VR-)DIANA", DASHES["diana"])]
    looks: list[tuple[str, dict[str, Any]]] = [
        (f"K = {k}", {"color": COLOURS.get(k, "black"), "linewidth": 4}) for k in counts
    ]
    return looks + [(text, {"color": "black", "linestyle": dash}) for text, dash in methods]


def claims(logs: list[Log]) -> list[Claim]:
    """MARINA and VR-MARINA need less than DIANA and VR-DIANA; what K does to each cost."""
    found = runs(logs)
    return [*_pairs(found), *_orders(found)]


def _pairs(found: Runs) -> Iterator[Claim]:
    settings = list(dict.fromkeys((data, k) for data, k, _ in found))
    for place, (less, more, cost) in enumerate(ROWS):
        source = f"MARINA, Section 5.1 and Figure 1, row {1 + place // 2}"
        for data, k in settings:
            text = f"{data}, K = {k}: {words.method(less)} needs fewer {COSTS[cost]} than"
            pair = found.get((data, k, less), []), found.get((data, k, more), [])
            claim = fewer(f"{text} {words.method(more)}", source, *pair, cost)
            yield _with_later_bits(claim, *pair) if cost is BITS else claim


def _with_later_bits(claim: Claim, less: list[Log], more: list[Log]) -> Claim:
    """The ratio of bits without g^0, too; in words where it alone turns the claim."""
    if "ratios" not in claim.details:
        return claim
    level = float(claim.details["level"])
    low = np.median([needed(log, LATER_BITS, level) for log in less])
    high = np.median([needed(log, BITS, level) for log in more])
    ratio = float(high / low) if low > 0 else None
    measured = claim.measured
    if not claim.holds and (ratio is None or ratio > 1):
        said = "g^0 alone took it there" if ratio is None else f"{ratio:.3g} times"
        measured += f"; without the 32 d bits of g^0: {said}"
    details = claim.details | {"ratio_without_start": ratio}
    return dataclasses.replace(claim, measured=measured, details=details)


def _orders(found: Runs) -> Iterator[Claim]:
    names = list(dict.fromkeys(data for data, _, _ in found))
    counts = sorted({k for _, k, _ in found})
    for method, _, cost in ROWS:
        smaller_is_better = cost is BITS
        order = counts if smaller_is_better else counts[::-1]
        theorem = "2.1" if method == "marina" else "3.1"
        source = f"MARINA, Theorem {theorem}: what its step size predicts for K"
        for data in names:
            groups = {f"K = {k}": found.get((data, k, method), []) for k in order}
            what = "smaller" if smaller_is_better else "larger"
            text = f"{data}: {words.method(method)} needs fewer {COSTS[cost]} the {what} K"
            if all(groups.values()):
                yield ordered(text, source, groups, cost)
