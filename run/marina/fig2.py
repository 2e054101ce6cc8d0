"""Figure 2: VR-MARINA against VR-DIANA, RandK, training a network."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

from mpisim.analysis import labels, panels, style
from mpisim.analysis.claims.comparing import DECADES, TENTHS, Targets, compare
from mpisim.analysis.claims.judging import undecided_at_edge
from mpisim.analysis.claims.verdicts import Claim, Evidence, state
from mpisim.analysis.curves import EPOCHS, GRADIENT, LOSS, Axis
from mpisim.analysis.study import BestSteps, best_steps, quotes
from mpisim.runs.log.reader import Log

SOURCE = "MARINA, Section 5.2 and Figure 2"
DASHES = {"vr-marina": "-", "vr-diana": (0, (4, 1.5))}
BITS = Axis("bits_up", log=True)  # uncompressed runs send 10 to 100 times as many
COSTS = {EPOCHS: "sample gradients", BITS: "bits"}


class Accuracy(NamedTuple):
    """What falls: its axis, and the targets."""

    axis: Axis
    name: str
    targets: Targets


# The gradient first: the theorems and Figure 1 are about it. Each, at each cost, has a best step.
ACCURACIES = (
    Accuracy(GRADIENT, "|grad f|^2", (*TENTHS, *DECADES[1:])),
    Accuracy(LOSS, "training loss", TENTHS),
)


Groups = dict[tuple[str, float], BestSteps]  # by method and K / d


def share(log: Log) -> float:
    """K / d; 1 without compression."""
    table = log.config["compressor"]
    return float(table["k"]) if table["name"] == "randk" else 1.0


def runs(logs: list[Log], x: Axis, y: Accuracy) -> Groups:
    """The best steps of each method and K, by what each K costs on ``x``."""
    groups = best_steps(logs, x, y.axis, y.targets, share)
    keyed = {(str(s.logs[0].attrs["method"]), share(s.logs[0])): s for s in groups}
    return dict(sorted(keyed.items()))


def draw(logs: list[Log]) -> Any:
    """Squared gradient norm and training loss, over epochs and over bits."""
    shares = sorted({share(log) for log in logs})
    colours = dict(zip(shares, style.COLOURS, strict=False))
    figure, drawn = panels.grid(len(ACCURACIES), len(COSTS))
    for row, y in zip(drawn, ACCURACIES, strict=True):
        for panel, x in zip(row, COSTS, strict=True):
            for (method, k), best in runs(logs, x, y).items():
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
    shares = sorted({share(log) for log in logs})
    for y in ACCURACIES:
        for x, unit in COSTS.items():
            groups = runs(logs, x, y)
            text = f"VR-MARINA needs significantly fewer {unit} than VR-DIANA, by {y.name}"
            evidence = [_faster(groups, k, x, y) for k in shares]
            yield state(text, quotes(__file__)["fig2"], SOURCE, evidence)


def _faster(groups: Groups, k: float, x: Axis, y: Accuracy) -> Evidence:
    """Compares the runs with the best steps."""
    sides = [groups.get((method, k)) for method in DASHES]
    marina, rival = (side.logs if side else [] for side in sides)
    one = compare(_name(k), marina, rival, x, y.axis, y.targets, "significantly")
    steps = [side.step for side in sides if side]
    one = dataclasses.replace(one, numbers=one.numbers | {"steps": steps}, counts=k < 1)
    return undecided_at_edge(one, [side.edge for side in sides if side])
