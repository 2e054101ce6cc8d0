"""MARINA, Figure 2: VR-MARINA against VR-DIANA, RandK, training a network."""

from __future__ import annotations

from typing import Any

from mpisim.analysis import labels as words
from mpisim.analysis import panels, style
from mpisim.analysis.claims import Claim, number
from mpisim.analysis.curves import Axis
from mpisim.analysis.papers import networks as nets
from mpisim.analysis.tune import best
from mpisim.runs.log.reader import Log

SOURCE = "MARINA, Section 5.2 and Figure 2"
INSTEAD = nets.INSTEAD
FILES = {"quick": "marina-fig2", "paper": "marina-fig2-paper"}
SCALES: dict[str, list[str]] = {"quick": [], "paper": []}
METHODS = {"vr-marina": "-", "vr-diana": (0, (4, 1.5))}
AXES = tuple((x, y) for y in (nets.LOSS, nets.GRADIENT) for x in (nets.EPOCHS, nets.BITS_UP))
COSTS = {nets.EPOCHS: "sample gradients", nets.BITS_UP: "bits"}

Runs = dict[tuple[str, float], Log]


def share(log: Log) -> float:
    """K / d; 1 without compression."""
    table = log.config["compressor"]
    return float(table["k"]) if table["name"] == "randk" else 1.0


def runs(logs: list[Log]) -> Runs:
    """{(method, K / d): the run with the best step}: the smallest last training loss."""
    by_path = {str(log.path): log for log in logs}
    found: Runs = {}
    for choice in best([log.path for log in logs], "loss"):
        if choice.best is not None:
            log = by_path[choice.best.logs[0]]
            found[str(log.attrs["method"]), share(log)] = log
    return dict(sorted(found.items()))


def draw(logs: list[Log]) -> Any:
    """Training loss and gradient norm, over epochs and over bits."""
    found = runs(logs)
    shares = sorted({k for _, k in found})
    colours = dict(zip(shares, style.COLOURS, strict=False))
    with panels.styled():
        figure, drawn = panels.grid(2, 2)
        for panel, (x, y) in zip(drawn.flat, AXES, strict=True):
            for (method, k), log in found.items():
                panels.curve(panel, [log], x, y, colours[k], METHODS[method])
            log = next(iter(found.values()))
            panels.dress(panel, x, y, x.label(log))
            panel.set_ylabel(y.label(log))
        looks: list[tuple[str, dict[str, Any]]] = [
            (_name(k), {"color": colours[k], "linewidth": 4}) for k in shares
        ]
        looks += [(words.method(m), {"color": "black", "linestyle": d}) for m, d in METHODS.items()]
        panels.legend(figure, looks)
        nets.caption(figure, nets.trained(log), 2)
    return figure


def _name(k: float) -> str:
    return "no compression" if k == 1 else f"K = {k:g} d"


def claims(logs: list[Log]) -> list[Claim]:
    """VR-MARINA is faster for every K, in sample gradients and in bits."""
    found = runs(logs)
    shares = sorted({k for _, k in found})
    return [_faster(found, k, x) for x in COSTS for k in shares]


def _faster(found: Runs, k: float, x: Axis) -> Claim:
    text = f"{_name(k)}: VR-MARINA needs fewer {COSTS[x]} than VR-DIANA"
    if any((method, k) not in found for method in METHODS):
        return Claim(text, SOURCE, "not measured: no complete run of both", False)
    ours, theirs = (found[method, k] for method in METHODS)
    level = max(float(nets.LOSS.values(log).min()) for log in (ours, theirs))
    start = float(nets.LOSS.values(ours)[0])
    costs = [nets.spent(log, x, level, nets.LOSS) for log in (ours, theirs)]
    ratio = costs[1] / costs[0] if costs[0] > 0 else float("nan")
    steps = [float(log.attrs["stepsize"]) for log in (ours, theirs)]
    return Claim(
        text,
        SOURCE,
        f"{number(ratio)} times, to training loss {level:.3g} from {start:.3g}",
        bool(ratio > 1 and level < start),
        {"level": level, "costs": costs, "steps": steps},
    )
