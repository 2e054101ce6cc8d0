"""Figure 2: VR-MARINA against VR-DIANA, RandK, training a network."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from mpisim.analysis import labels, panels, style
from mpisim.analysis.claims import (
    DECADES,
    TENTHS,
    Claim,
    Evidence,
    Targets,
    Verdict,
    compare,
    state,
)
from mpisim.analysis.curves import EPOCHS, GRADIENT, LOSS, Axis
from mpisim.analysis.study import tuned
from mpisim.analysis.tune import TunedSetting
from mpisim.runs.log.reader import Log

SOURCE = "MARINA, Section 5.2 and Figure 2"
QUOTE = (
    "VR-MARINA converges significantly faster than VR-DIANA both in terms of the oracle complexity"
    " and the total number of transmitted bits to achieve the given accuracy"
)
DASHES = {"vr-marina": "-", "vr-diana": (0, (4, 1.5))}
BITS = Axis("bits_up", log=False)
COSTS = {EPOCHS: "sample gradients", BITS: "bits"}


@dataclasses.dataclass(frozen=True)
class Accuracy:
    """What falls: its axis, how `mpisim tune` picks the step by it, and the targets."""

    axis: Axis
    criterion: str
    name: str
    targets: Targets


# The gradient first: the theorems and Figure 1 are about it. Each has a best step of its own.
ACCURACIES = (
    Accuracy(GRADIENT, "final", "|grad f|^2", (*TENTHS, *DECADES[1:])),
    Accuracy(LOSS, "loss", "training loss", TENTHS),
)


@dataclasses.dataclass(frozen=True)
class Best:
    """The runs with the best step, one for each seed.

    edge : why a wider grid of steps may have a better one; empty where the best is inside
    """

    logs: list[Log]
    edge: str


Found = dict[tuple[str, float], Best]  # by method and K / d


def share(log: Log) -> float:
    """K / d; 1 without compression."""
    table = log.config["compressor"]
    return float(table["k"]) if table["name"] == "randk" else 1.0


def runs(logs: list[Log], criterion: str) -> Found:
    """The runs of each method and K with the best step by ``criterion``."""
    by_path = {str(log.path): log for log in logs}
    found = {}
    for setting in tuned(logs, criterion):
        if setting.best is not None:
            own = [by_path[path] for path in setting.best.logs]
            found[str(own[0].attrs["method"]), share(own[0])] = Best(own, _edge(own[0], setting))
    return dict(sorted(found.items()))


def _edge(log: Log, setting: TunedSetting) -> str:
    """A line where the best step is the smallest or the largest that was tried."""
    if not setting.edge or setting.best is None:
        return ""
    step, first = setting.best.step, setting.candidates[0].step
    side, other = ("smallest", "smaller") if step == first else ("largest", "larger")
    name = labels.method(str(log.attrs["method"]))
    return f"the best step of {name}, {step:g}, is the {side} of the grid: try {other} ones, too"


def draw(logs: list[Log]) -> Any:
    """Squared gradient norm and training loss, over epochs and over bits."""
    found = [runs(logs, y.criterion) for y in ACCURACIES]
    shares = sorted({k for own in found for _, k in own})
    colours = dict(zip(shares, style.COLOURS, strict=False))
    figure, drawn = panels.grid(len(ACCURACIES), len(COSTS))
    for row, own, y in zip(drawn, found, ACCURACIES, strict=True):
        for panel, x in zip(row, COSTS, strict=True):
            for (method, k), best in own.items():
                panels.curve(panel, best.logs, x, y.axis, colours[k], DASHES[method])
            panels.dress(panel, x, y.axis, x.label(logs[0]), y.axis.label(logs[0]))
    entries = panels.colours_of([(_name(k), colour) for k, colour in colours.items()])
    entries += panels.dashes_of({labels.method(name): dash for name, dash in DASHES.items()})
    panels.legend(figure, entries)
    panels.caption(figure, labels.training(logs[0].config, logs[0].n), 2)
    return figure


def _name(k: float) -> str:
    return "no compression" if k == 1 else f"K = {k:.3g} d"


def claims(logs: list[Log]) -> Iterator[Claim]:
    """VR-MARINA is faster for every K, by gradient and by loss, in sample gradients and in bits."""
    for y in ACCURACIES:
        found = runs(logs, y.criterion)
        shares = sorted({k for _, k in found})
        for x, unit in COSTS.items():
            text = f"VR-MARINA needs fewer {unit} than VR-DIANA, by {y.name}"
            yield state(text, QUOTE, SOURCE, [_faster(found, k, x, y) for k in shares])


def _faster(found: Found, k: float, x: Axis, y: Accuracy) -> Evidence:
    """Compares the runs with the best steps; not decided where one is at the edge of the grid."""
    pair = [[found[method, k]] if (method, k) in found else [] for method in DASHES]
    own, rival = ([log for best in side for log in best.logs] for side in pair)
    one = compare(_name(k), own, rival, x, y.axis, y.targets)
    steps = [float(best.logs[0].attrs["stepsize"]) for side in pair for best in side]
    one = dataclasses.replace(one, numbers=one.numbers | {"steps": steps})
    edges = [best.edge for side in pair for best in side if best.edge]
    if not edges:
        return one
    measured = "; ".join([*edges, f"with these {one.measured}"])
    return dataclasses.replace(one, measured=measured, verdict=Verdict.UNDECIDED)
