"""Where compression starts to pay: seconds to an accuracy, at several speeds of the links."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from mpisim.analysis import labels, panels, style
from mpisim.analysis.claims.comparing import compare, needed, seed
from mpisim.analysis.claims.verdicts import (
    Claim,
    Evidence,
    Verdict,
    decided,
    number,
    on_seconds,
    state,
)
from mpisim.analysis.curves import GRADIENT, Axis
from mpisim.analysis.link_model import ModelledSeconds
from mpisim.comm.links import Links, parse
from mpisim.core.errors import InputError
from mpisim.runs.log.reader import Log

SOURCE = "measured in the network lab, to 3e-4 of |grad f(x^0)|^2"
MODEL = "the network model, applied to the logs of unlimited links"
METHODS = ("gd", "marina", "diana")
LOOKS: dict[str, tuple[str, Any, str]] = {
    "gd": (style.COLOURS[6], "-", "o"),
    "marina": (style.COLOURS[0], (0, (4, 1.5)), "s"),
    "diana": (style.COLOURS[1], (0, (1.5, 1)), "^"),
}
ACCURACY = 3e-4
CLOSE = 0.15
SLOWEST, FASTEST = 3e6, 1e11  # ends of the axis, bits a second; unlimited links at the right
TICKS = {1e7: "10M", 1e8: "100M", 1e9: "1G", FASTEST: "∞"}
SECONDS = Axis("seconds", log=True)


@dataclasses.dataclass(frozen=True)
class Speed:
    """The logs of one network: {method: {seed: log}}."""

    network: Links
    logs: dict[str, dict[int, Log]]

    @property
    def name(self) -> str:
        """The links' speed, for a reader."""
        return _rate(self.network.up)

    def median(self, method: str) -> float:
        """Median seconds to the accuracy over the seeds; infinity where it is not reached."""
        return float(np.median([_needed(log, SECONDS) for log in self.logs[method].values()]))


def runs(logs: list[Log]) -> list[Speed]:
    """The networks with runs of all methods, slowest first; `InputError` without unlimited ones."""
    speeds: dict[str, Speed] = {}
    for log in logs:
        text = str(log.attrs.get("network", ""))
        if not text:
            raise InputError(f"{log.path}: not from the lab; `make netlab-crossover` runs it")
        one = speeds.setdefault(text, Speed(parse(text, f"{log.path}:"), {}))
        one.logs.setdefault(str(log.attrs["method"]), {})[seed(log)] = log
    complete = [one for one in speeds.values() if one.logs.keys() >= set(METHODS)]
    complete.sort(key=lambda one: one.network.up)
    if len(complete) < 2 or complete[-1].network.up < float("inf"):
        raise InputError("the logs need two networks or more, one of them with unlimited links")
    return complete


def _needed(log: Log, axis: Axis) -> float:
    return needed(log, axis, ACCURACY * float(log.column("grad_norm_sq")[0]))


def predicted(log: Log, network: Links) -> float:
    """Seconds to the accuracy on another network, which the model predicts from a log."""
    return _needed(log, ModelledSeconds("seconds", True, links=network))


def draw(logs: list[Log]) -> Any:
    """Seconds over the links' speed, measured and modelled; |grad f|^2 over seconds at each."""
    speeds = runs(logs)
    figure, grid = panels.grid(1, 1 + len(speeds))
    _seconds(grid[0, 0], speeds)
    for panel, one in zip(grid[0, 1:], speeds, strict=True):
        for method in METHODS:
            first = min(one.logs[method].values(), key=seed)
            panels.curve(panel, [first], SECONDS, GRADIENT, *LOOKS[method][:2])
        panels.dress(panel, SECONDS, GRADIENT, "seconds")
        panel.set_title(one.name)
    grid[0, 1].set_ylabel(GRADIENT.label(logs[0]))
    looks = {}
    for method in METHODS:
        compressor = next(iter(speeds[-1].logs[method].values())).config["compressor"]
        compressed = compressor["name"] != "identity"
        sent = f" + {labels.compressor(compressor)}" if compressed else ""
        looks[labels.method(method) + sent] = LOOKS[method][:2]
    panels.legend(figure, panels.entries_of(looks))
    return figure


def _seconds(panel: Any, speeds: list[Speed]) -> None:
    rates = np.geomspace(SLOWEST, FASTEST, 100)
    for method in METHODS:
        colour, dash, marker = LOOKS[method]
        modelled = [_modelled(speeds, method, float(rate)) for rate in rates]
        panel.plot(rates, modelled, color=colour, linestyle=dash)
        for one in speeds:
            at = min(one.network.up, FASTEST)
            panel.plot(at, one.median(method), color=colour, marker=marker, linestyle="")
    panel.set_xscale("log")
    panel.set_xticks(list(TICKS), list(TICKS.values()))
    panel.minorticks_off()
    panel.set_yscale("log")
    panel.set_xlabel("speed of the links, bit/s")
    panel.set_ylabel("seconds to the accuracy")
    panel.set_title("measured, and model")


def _modelled(speeds: list[Speed], method: str, rate: float) -> float:
    """Median seconds to the accuracy at ``rate``, by the model of the logs of unlimited links."""
    network = dataclasses.replace(speeds[0].network, up=rate, down=rate)
    return float(np.median([predicted(log, network) for log in speeds[-1].logs[method].values()]))


def claims(logs: list[Log]) -> Iterator[Claim]:
    """Which method is ahead at which speed, and how well the model tells the seconds."""
    speeds = runs(logs)
    slow, fast = speeds[0], speeds[-1]
    paid = [_ahead(slow, method, "gd", method) for method in METHODS[1:]]
    lost = [_ahead(fast, "gd", method, method) for method in METHODS[1:]]
    turns = [_pays_up_to(speeds, method) for method in METHODS[1:]]
    text = "compression pays up to the speed that the model gives"
    for claim in (
        state(f"{slow.name}: compression reaches the target before GD", "", SOURCE, paid),
        state(f"{fast.name}: GD reaches the target before compression", "", SOURCE, lost),
        state(text, "", MODEL, turns),
        state(f"the model is within {CLOSE:.0%}", "", MODEL, list(_model(speeds))),
    ):
        yield on_seconds(claim, logs)


def _ahead(one: Speed, less: str, more: str, method: str) -> Evidence:
    """``less`` is at the accuracy before ``more``."""
    first, second = (list(one.logs[name].values()) for name in (less, more))
    return compare(labels.method(method), first, second, SECONDS, targets=(ACCURACY,))


def _pays_up_to(speeds: list[Speed], method: str) -> Evidence:
    """The speed at which the model sees no gain any more lies where the measured order turns."""
    paid = [one for one in speeds if one.median(method) < one.median("gd")]
    lost = [one for one in speeds if one not in paid]
    low = max((one.network.up for one in paid), default=0.0)
    high = min((one.network.up for one in lost), default=float("inf"))
    turn = _turn(speeds, method)
    shown = f"the model says {_rate(turn)}, measured between {_rate(low)} and {_rate(high)}"
    numbers = {"model": turn, "from": low, "to": high}
    return Evidence(labels.method(method), shown, decided(low <= turn <= high), numbers)


def _turn(speeds: list[Speed], method: str) -> float:
    """The smallest speed at which the model has GD ahead, bits a second; infinity without any."""
    for rate in np.geomspace(1e5, 1e12, 1401).tolist():
        if _modelled(speeds, method, rate) >= _modelled(speeds, "gd", rate):
            return rate
    return float("inf")


def _rate(value: float) -> str:
    if value == float("inf"):
        return "no limit"
    return f"{value / 1e6:.3g} Mbit/s" if value < 1e9 else f"{value / 1e9:.3g} Gbit/s"


def _model(speeds: list[Speed]) -> Iterator[Evidence]:
    """The model predicts the seconds on each network from the logs of unlimited links."""
    for one in speeds[:-1]:
        for method in METHODS:
            yield _predicts(speeds[-1], one, method)


def _predicts(base: Speed, one: Speed, method: str) -> Evidence:
    name = f"{one.name}, {labels.method(method)}"
    before, after = base.logs[method], one.logs[method]
    reached = {}  # {seed: (modelled, measured) seconds}
    for s in sorted(before.keys() & after.keys()):
        pair = predicted(before[s], one.network), _needed(after[s], SECONDS)
        if np.isfinite(pair).all():
            reached[s] = pair
    if not reached:
        return Evidence(name, "no seed reached it in both runs", Verdict.UNDECIDED)
    model, seconds = map(list, zip(*reached.values(), strict=True))
    error = float(np.median(np.divide(model, seconds))) - 1
    measured = f"{number(float(np.median(model)))} s for {number(float(np.median(seconds)))} s"
    numbers = {"measured": seconds, "model": model, "seeds": list(reached)}
    return Evidence(name, f"{measured}, {error:+.1%}", decided(abs(error) <= CLOSE), numbers)
