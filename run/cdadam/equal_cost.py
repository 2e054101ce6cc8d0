"""Networks compared at equal cost: the axes of the figures, and two runs as evidence."""

from __future__ import annotations

import numpy as np

from mpisim.analysis import labels
from mpisim.analysis.claims import TENTHS, Evidence, Verdict, decided, judge, number, value_at
from mpisim.analysis.curves import EPOCHS, Axis, Named, crossing
from mpisim.runs.log.reader import Log

BITS = Axis("bits_total", log=True)
ACCURACY = Named("train_accuracy", log=False, text="training accuracy")
TEST_LOSS = Named("test_loss", log=False, text="test loss")
TEST_NORM = Named("test_grad_norm_sq", log=True, text="test gradient norm", of=np.sqrt)
TEST_ACCURACY = Named("test_accuracy", log=False, text="test accuracy")
TEST_ERROR = Named("test_accuracy", log=False, text="test error", of=lambda share: 1 - share)
COSTS = {EPOCHS: "epochs", BITS: "bits"}


def better(own: Log, rival: Log, y: Axis, x: Axis) -> Evidence:
    """``own`` has the better y when both have spent the same on x: all of the cheaper run.

    Both have the same rounds; not decided otherwise.
    """
    where = f"{y.label(own)}, {name(rival)}"
    rounds = [int(log.column("round")[-1]) for log in (own, rival)]
    if rounds[0] != rounds[1]:
        return Evidence(where, f"{rounds[0]} and {rounds[1]} rounds", Verdict.UNDECIDED)
    budget = min(float(x.values(log)[-1]) for log in (own, rival))
    ours, theirs = (value_at(log, y, x, budget) for log in (own, rival))
    ratio = ours / theirs if y.name.endswith("accuracy") else theirs / ours
    numbers = {"median": ratio, "budget": budget, "own": ours, "rival": theirs}
    return Evidence(where, f"{ours:.3g} and {theirs:.3g}", judge([ratio]), numbers)


def name(log: Log) -> str:
    """The paper's name for a run's method."""
    return labels.method(str(log.attrs["method"]))


def times_fewer(less: Log, more: Log, x: Axis, y: Axis, wanted: float, within: float) -> Evidence:
    """``more`` spends about ``wanted`` times as much of x to get y down to a fixed target.

    Targets are tenths of y at the start, and the deepest one that both reached decides; "about" is
    up to a factor ``within``. The ratios at all targets are in the numbers.
    """
    start = max(float(y.values(log)[0]) for log in (less, more))
    ratios = {t: crossing(more, x, y, t * start) / crossing(less, x, y, t * start) for t in TENTHS}
    ratios = {t: ratio for t, ratio in ratios.items() if np.isfinite(ratio) and ratio > 0}
    if not ratios:
        why = f"not both got to {TENTHS[0]:g} of the start"
        return Evidence(y.label(less), why, Verdict.UNDECIDED)
    target = min(ratios)
    low, high, ratio = wanted / within, wanted * within, ratios[target]
    measured = f"{number(ratio)} times, to {target:g} of the start"
    measured += f" ({low:.3g} to {high:.3g} holds)"
    if len(ratios) > 1:
        measured += f"; {number(min(ratios.values()))} to {number(max(ratios.values()))} at all"
    by_target = {f"{t:g}": own for t, own in ratios.items()}
    numbers = {"target": target, "ratio": ratio, "by_target": by_target}
    return Evidence(y.label(less), measured, decided(low <= ratio <= high), numbers)
