"""Networks compared at equal cost: the axes of the figures, and claims of two runs."""

from __future__ import annotations

import numpy as np

from mpisim.analysis import labels
from mpisim.analysis.claims import Claim, number
from mpisim.analysis.curves import EPOCHS, Axis, Named, crossing
from mpisim.runs.log.reader import Log

BITS = Axis("bits_total", log=True)
ACCURACY = Named("train_accuracy", log=False, text="training accuracy")
TEST_LOSS = Named("test_loss", log=False, text="test loss")
TEST_NORM = Named("test_grad_norm_sq", log=True, text="test gradient norm", of=np.sqrt)
TEST_ACCURACY = Named("test_accuracy", log=False, text="test accuracy")
COSTS = {EPOCHS: "epochs", BITS: "bits"}


def better(own: Log, rival: Log, y: Axis, x: Axis, source: str) -> Claim:
    """Claim that ``own`` has the better y when both have spent the same on x."""
    budget = min(float(x.values(own)[-1]), float(x.values(rival)[-1]))
    ours, theirs = (value_at(log, y, x, budget) for log in (own, rival))
    higher = y.name.endswith("accuracy")
    return Claim(
        f"{name(own)} has the {'higher' if higher else 'smaller'} {y.label(own)} than"
        f" {name(rival)} at equal {COSTS[x]}",
        source,
        f"{ours:.3g} and {theirs:.3g}",
        ours > theirs if higher else ours < theirs,
        {"budget": budget, "own": ours, "rival": theirs},
    )


def name(log: Log) -> str:
    """The paper's name for a run's method."""
    return labels.method(str(log.attrs["method"]))


def value_at(log: Log, y: Axis, x: Axis, budget: float) -> float:
    """y in the last row at which at most ``budget`` was spent on x."""
    within = np.flatnonzero(x.values(log) <= budget * (1 + 1e-9))
    return float(y.values(log)[within[-1]])


def times_fewer(
    less: Log, more: Log, x: Axis, y: Axis, wanted: float, within: float, source: str
) -> Claim:
    """Claim that ``more`` spends about ``wanted`` times as much of x to reach a level of y.

    The level is the smallest that both reached; "about" is up to a factor ``within``. The ratios at
    the earlier rows of ``less`` are in the text and in the details.
    """
    level = max(float(y.values(log).min()) for log in (less, more))
    start = min(float(y.values(log)[0]) for log in (less, more))
    before = [float(value) for value in y.values(less) if level < value < start]
    ratio, *ratios = (
        crossing(more, x, y, value) / crossing(less, x, y, value) for value in [level, *before]
    )
    told = f"; {number(min(ratios))} to {number(max(ratios))} times before" if ratios else ""
    low, high = wanted / within, wanted * within
    return Claim(
        f"{name(less)} needs about {wanted:g} times fewer {COSTS[x]} than {name(more)} at equal"
        f" {y.label(less)}",
        source,
        f"{number(ratio)} times, at {y.label(less)} {level:.3g}"
        f" ({low:.3g} to {high:.3g} holds){told}",
        bool(low <= ratio <= high),
        {"level": level, "ratio": ratio, "levels": before, "ratios": ratios},
    )
