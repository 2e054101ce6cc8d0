"""What figures of neural networks share: axes, panels, and claims at equal cost."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from mpisim.analysis import labels as words
from mpisim.analysis import panels
from mpisim.analysis.claims import Claim, number
from mpisim.analysis.curves import Axis, Epochs
from mpisim.runs.log.reader import Log

INSTEAD = {"cifar10-part": "generated"}  # what is trained on where a data set is not here
NETWORKS = {"resnet18": "ResNet-18", "vgg16": "VGG-16", "wrn-16-4": "WideResNet-16-4"}
DATA = {
    "cifar10": "CIFAR-10",
    "cifar100": "CIFAR-100",
    "cifar10-part": "part of CIFAR-10",
    "generated": "generated images",
}


@dataclasses.dataclass(frozen=True)
class Named(Axis):
    """A column under a name of its own; ``root`` of a squared norm."""

    text: str = ""
    root: bool = False

    def values(self, log: Log) -> np.ndarray:
        return np.sqrt(log.column(self.name)) if self.root else log.column(self.name)

    def label(self, log: Log) -> str:
        return self.text


EPOCHS, BITS = Epochs("epochs", log=False), Axis("bits_total", log=True)
BITS_UP = Axis("bits_up", log=False)
ROUNDS = Axis("round", log=False)
LOSS = Named("loss", log=False, text="training loss")
GRADIENT = Named("grad_norm_sq", log=True, text="training gradient norm", root=True)
ACCURACY = Named("train_accuracy", log=False, text="training accuracy")
TEST_LOSS = Named("test_loss", log=False, text="test loss")
TEST_GRADIENT = Named("test_grad_norm_sq", log=True, text="test gradient norm", root=True)
TEST_ACCURACY = Named("test_accuracy", log=False, text="test accuracy")
COSTS = {"epochs": "epochs", "bits_total": "bits", "bits_up": "bits", "round": "rounds"}


def trained(log: Log) -> str:
    """What was trained, in words: ``ResNet-18 (1/8 of its channels) on part of CIFAR-10, ...``."""
    table = log.config["problem"]
    width, pool = float(table["width"]), int(table["pool"])
    name = NETWORKS.get(table["model"], str(table["model"]))
    data = DATA.get(table["data"], str(table["data"]))
    less = [] if width == 1 else [f"{width:g} of its channels"]
    less += [] if pool == 1 else [f"images averaged over {pool} x {pool} pixels"]
    less += [f"{table['samples']} images"] if table["samples"] else []
    small = f" ({', '.join(less)})" if less else ""
    batch = log.config["method"].get("batch")
    return f"{name} on {data}{small}, n = {log.n}, batch {batch}"


def grid(
    curves: Sequence[tuple[str, Log, str, Any]],
    axes: Sequence[tuple[Axis, Axis]],
    columns: int,
    title: str,
) -> Any:
    """Panels of curves (text, log, colour, dash) on pairs of axes, x first; row by row."""
    with panels.styled():
        figure, drawn = panels.grid(-(-len(axes) // columns), columns)
        for panel, (x, y) in zip(drawn.flat, axes, strict=True):
            for _, log, colour, dash in reversed(curves):
                panels.curve(panel, [log], x, y, colour, dash)
            panels.dress(panel, x, y, x.label(curves[0][1]))
            panel.set_ylabel(y.label(curves[0][1]))
        looks = [(text, {"color": colour, "linestyle": dash}) for text, _, colour, dash in curves]
        panels.legend(figure, looks)
        caption(figure, title, columns)
    return figure


def caption(figure: Any, text: str, columns: int) -> None:
    """What was trained, below ``columns`` panels side by side."""
    figure.supxlabel(textwrap.fill(text, 40 * columns), fontsize=8, color="#555555")


def value_at(log: Log, y: Axis, x: Axis, budget: float) -> float:
    """y in the last row in which no more than ``budget`` had been spent on x."""
    within = np.flatnonzero(x.values(log) <= budget * (1 + 1e-9))
    return float(y.values(log)[within[-1]])


def better(own: Log, rival: Log, y: Axis, x: Axis, source: str) -> Claim:
    """That ``own`` ends better in y than ``rival`` stood when it had spent as much of x."""
    budget = min(float(x.values(own)[-1]), float(x.values(rival)[-1]))
    ours, theirs = value_at(own, y, x, budget), value_at(rival, y, x, budget)
    higher = y.name.endswith("accuracy")
    names = [words.method(str(log.attrs["method"])) for log in (own, rival)]
    return Claim(
        f"{names[0]} has the {'higher' if higher else 'smaller'} {y.label(own)} than {names[1]}"
        f" at equal {COSTS[x.name]}",
        source,
        f"{ours:.3g} and {theirs:.3g}",
        bool(ours > theirs if higher else ours < theirs),
        {"budget": budget, "own": ours, "rival": theirs},
    )


def spent(log: Log, x: Axis, level: float, y: Axis) -> float:
    """What had been spent on x when y first came down to the level, between rows by log y."""
    values = np.log(np.minimum.accumulate(y.values(log)))
    below = np.flatnonzero(values <= np.log(level))
    if not below.size:
        return float("inf")
    k, costs = int(below[0]), x.values(log)
    if k == 0:
        return float(costs[0])
    share = (values[k - 1] - np.log(level)) / (values[k - 1] - values[k])
    return float(costs[k - 1] + share * (costs[k] - costs[k - 1]))


def times_fewer(
    less: Log, more: Log, x: Axis, y: Axis, wanted: float, within: float, source: str
) -> Claim:
    """That ``more`` spends about ``wanted`` times as much of x until both reach a level of y.

    The level is the smallest that both reached; "about" is up to a factor ``within``. What is
    spent to the levels before, those of the rows of ``less``, is told, too.
    """
    level = max(float(y.values(log).min()) for log in (less, more))
    ratio = spent(more, x, level, y) / spent(less, x, level, y)
    start = min(float(y.values(log)[0]) for log in (less, more))
    before = [float(value) for value in y.values(less) if level < value < start]
    ratios = [spent(more, x, value, y) / spent(less, x, value, y) for value in before]
    told = f"; {number(min(ratios))} to {number(max(ratios))} times before" if ratios else ""
    names = [words.method(str(log.attrs["method"])) for log in (less, more)]
    return Claim(
        f"{names[0]} needs about {wanted:g} times fewer {COSTS[x.name]} than {names[1]} at equal"
        f" {y.label(less)}",
        source,
        f"{number(ratio)} times, at {y.label(less)} {level:.3g}"
        f" ({wanted / within:.3g} to {wanted * within:.3g} holds){told}",
        bool(wanted / within <= ratio <= wanted * within),
        {"level": level, "ratio": ratio, "levels": before, "ratios": ratios},
    )
