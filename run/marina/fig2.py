"""Figure 2: VR-MARINA against VR-DIANA, RandK, training a network."""

from __future__ import annotations

import dataclasses
from typing import Any

from mpisim.analysis import labels, panels, style
from mpisim.analysis.claims import TENTHS, Claim, Evidence, compare, state
from mpisim.analysis.curves import EPOCHS, LOSS, NORM, Axis
from mpisim.analysis.study import best_run
from mpisim.runs.log.reader import Log

SOURCE = "MARINA, Section 5.2 and Figure 2"
QUOTE = (
    "VR-MARINA converges significantly faster than VR-DIANA both in terms of the oracle complexity"
    " and the total number of transmitted bits to achieve the given accuracy"
)
DASHES = {"vr-marina": "-", "vr-diana": (0, (4, 1.5))}
BITS = Axis("bits_up", log=False)
COSTS = {EPOCHS: "sample gradients", BITS: "bits"}
AXES = tuple((x, y) for y in (LOSS, NORM) for x in COSTS)

Found = dict[tuple[str, float], Log]


def share(log: Log) -> float:
    """K / d; 1 without compression."""
    table = log.config["compressor"]
    return float(table["k"]) if table["name"] == "randk" else 1.0


def runs(logs: list[Log]) -> Found:
    """{(method, K / d): the run with the best step}: the smallest last training loss."""
    best = best_run(logs, lambda log: (str(log.attrs["method"]), share(log)), "loss")
    return dict(sorted(best.items()))


def draw(logs: list[Log]) -> Any:
    """Training loss and gradient norm, over epochs and over bits."""
    found = runs(logs)
    shares = sorted({k for _, k in found})
    colours = dict(zip(shares, style.COLOURS, strict=False))
    log = next(iter(found.values()))
    figure, drawn = panels.grid(2, 2)
    for panel, (x, y) in zip(drawn.flat, AXES, strict=True):
        for (method, k), own in found.items():
            panels.curve(panel, [own], x, y, colours[k], DASHES[method])
        panels.dress(panel, x, y, x.label(log), y.label(log))
    entries = panels.colours_of([(_name(k), colour) for k, colour in colours.items()])
    entries += panels.dashes_of({labels.method(name): dash for name, dash in DASHES.items()})
    panels.legend(figure, entries)
    panels.caption(figure, labels.training(log.config, log.n), 2)
    return figure


def _name(k: float) -> str:
    return "no compression" if k == 1 else f"K = {k:g} d"


def claims(logs: list[Log]) -> list[Claim]:
    """VR-MARINA is faster for every K, in sample gradients and in bits."""
    found = runs(logs)
    shares = sorted({k for _, k in found})
    return [
        state(
            f"VR-MARINA needs fewer {unit} than VR-DIANA",
            QUOTE,
            SOURCE,
            [_faster(found, k, x) for k in shares],
        )
        for x, unit in COSTS.items()
    ]


def _faster(found: Found, k: float, x: Axis) -> Evidence:
    """Compares the runs with the best steps."""
    own, rival = ([found[method, k]] if (method, k) in found else [] for method in DASHES)
    one = compare(_name(k), own, rival, x, LOSS, TENTHS)
    steps = [float(log.attrs["stepsize"]) for log in (*own, *rival)]
    return dataclasses.replace(one, numbers=one.numbers | {"steps": steps})
