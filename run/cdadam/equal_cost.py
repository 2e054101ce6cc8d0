"""Networks compared at equal cost: the axes of the figures, and two methods' runs as evidence.

Runs are compared on each seed that both methods have, and a verdict is that of all seeds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mpisim.analysis import labels
from mpisim.analysis.claims import (
    TENTHS,
    Evidence,
    Verdict,
    decided,
    every,
    judge,
    number,
    pairs,
    seed,
    value_at,
)
from mpisim.analysis.curves import EPOCHS, Axis, Named, crossing
from mpisim.runs.log.reader import Log

BITS = Axis("bits_total", log=True)
ACCURACY = Named("train_accuracy", log=False, text="training accuracy")
TEST_LOSS = Named("test_loss", log=False, text="test loss")
TEST_NORM = Named("test_grad_norm_sq", log=True, text="test gradient norm", of=np.sqrt)
TEST_ACCURACY = Named("test_accuracy", log=False, text="test accuracy")
TEST_ERROR = Named("test_accuracy", log=False, text="test error", of=lambda share: 1 - share)
COSTS = {EPOCHS: "epochs", BITS: "bits"}

Runs = Sequence[Log]  # of a method, one for each seed
ABOUT = 1.6  # "around" 32 times means up to this factor


def gone(method: str) -> Evidence:
    """What is told of a method without a run."""
    name = labels.method(method)
    return Evidence(name, f"no complete run of {name}", Verdict.UNDECIDED)


def times_better(ours: np.ndarray, theirs: np.ndarray, y: Axis) -> np.ndarray:
    """How many times smaller our y is; for accuracies, how many times larger."""
    return ours / theirs if y.name.endswith("accuracy") else theirs / ours


def better(own: Runs, rival: Runs, y: Axis, x: Axis) -> Evidence:
    """``own`` has the better y when both have spent the same on x: all of the cheaper run.

    Both have the same rounds; not decided otherwise.
    """
    where = f"{y.label(own[0])}, {name(rival)}"
    both = pairs(own, rival)
    for pair in both:
        rounds = [int(log.column("round")[-1]) for log in pair]
        if rounds[0] != rounds[1]:
            return Evidence(where, f"{rounds[0]} and {rounds[1]} rounds", Verdict.UNDECIDED)
    if not both:
        return Evidence(where, "no seed has both runs", Verdict.UNDECIDED)
    budgets = [min(float(x.values(log)[-1]) for log in pair) for pair in both]
    found = [
        [value_at(log, y, x, budget) for log in pair]
        for pair, budget in zip(both, budgets, strict=True)
    ]
    ours, theirs = np.transpose(found)
    ratios = times_better(ours, theirs, y)
    measured = f"{np.median(ours):.3g} and {np.median(theirs):.3g}"
    numbers = _numbers(both, ratios) | {"budgets": budgets}
    numbers |= {"own": ours.tolist(), "rival": theirs.tolist()}
    return Evidence(where, measured, judge(ratios.tolist()), numbers)


def ahead(one: Runs, other: Runs, x: Axis, y: Axis, until: float = 1.0) -> Evidence:
    """``one`` has the better y somewhere within the share ``until`` of what both spent on x.

    That place is where the median over the seeds is the best.
    """
    where, both = y.label(one[0]), pairs(one, other)
    places, values = at_equal(both, x, y, until)
    if not places.size:
        return Evidence(where, "no row is that early", Verdict.UNDECIDED)
    ratios = times_better(values[:, 0], values[:, 1], y)  # (seeds, places)
    best = int(np.argmax(np.median(ratios, axis=0)))
    ours, theirs = np.median(values[:, :, best], axis=0)
    measured = f"{ours:.3g} and {theirs:.3g} at {number(float(places[best]))} {COSTS[x]}"
    verdict = judge(ratios[:, best].tolist())
    return Evidence(where, measured, verdict, _numbers(both, ratios[:, best]))


def at_equal(
    both: Sequence[tuple[Log, Log]], x: Axis, y: Axis, until: float
) -> tuple[np.ndarray, np.ndarray]:
    """Where rows of the first run are, up to the share ``until``, and y there.

    Shapes (places,) and (pairs, 2, places).
    """
    if not both:
        return np.empty(0), np.empty((0, 2, 0))
    ours = x.values(both[0][0])
    least = min(float(x.values(log)[-1]) for pair in both for log in pair)
    places = ours[(ours > 0) & (ours <= until * least)]
    values = [[np.interp(places, x.values(log), y.values(log)) for log in pair] for pair in both]
    return places, np.array(values)


def _numbers(both: Sequence[tuple[Log, Log]], ratios: np.ndarray) -> dict:
    seeds = [seed(pair[0]) for pair in both]
    return {"median": float(np.median(ratios)), "ratios": ratios.tolist(), "seeds": seeds}


def name(logs: Runs) -> str:
    """The paper's name for the method of runs."""
    return labels.method(str(logs[0].attrs["method"]))


def times_fewer(less: Runs, more: Runs, x: Axis, y: Axis, wanted: float) -> Evidence:
    """``more`` spends about ``wanted`` times as much of x to get y down, along the whole curve.

    Levels are the tenths of y at the start that all runs reached. Every one counts: there the ratio
    of each seed is ``wanted`` up to a factor `ABOUT`.
    """
    where, both = y.label(less[0]), pairs(less, more)
    start = max((float(y.values(log)[0]) for pair in both for log in pair), default=np.nan)
    ratios = {t: [_ratio(a, b, x, y, t * start) for a, b in both] for t in TENTHS}
    ratios = {t: own for t, own in ratios.items() if own and np.isfinite(own).all()}
    if not ratios:
        why = f"not both got to {TENTHS[0]:g} of the start"
        return Evidence(where, why, Verdict.UNDECIDED)
    levels = [_level(t * start, own, wanted) for t, own in ratios.items()]
    held = [one for one in levels if one.verdict is Verdict.HOLDS]
    measured = levels[0].measured
    if len(levels) > 1:
        measured += f", {levels[-1].measured}"
    measured += f"; around {wanted:g} at {len(held)} of {len(levels)} levels"
    if 0 < len(held) < len(levels):
        measured += f", from {held[0].where} to {held[-1].where}"
    numbers = {"start": start, "around": [wanted / ABOUT, wanted * ABOUT]}
    numbers["by_target"] = {
        f"{t:g}": one.numbers | {"verdict": one.verdict}
        for t, one in zip(ratios, levels, strict=True)
    }
    return Evidence(where, measured, every(levels), numbers)


def whole_runs(less: Runs, more: Runs, x: Axis, wanted: float) -> Evidence:
    """How many times as much of x all rounds of ``more`` spend, told beside the curve."""
    both = pairs(less, more)
    ratios = [float(x.values(b)[-1] / x.values(a)[-1]) for a, b in both]
    if not ratios:
        return Evidence("all rounds", "no seed has both runs", Verdict.UNDECIDED, counts=False)
    median = float(np.median(ratios))
    numbers = {"median": median, "ratios": ratios}
    return Evidence("all rounds", f"{number(median)} times", _about(ratios, wanted), numbers, False)


def _ratio(less: Log, more: Log, x: Axis, y: Axis, level: float) -> float:
    """How many times as much ``more`` spends until y is at ``level``; NaN where one never is."""
    ours, theirs = (crossing(log, x, y, level) for log in (less, more))
    return theirs / ours if 0 < ours < np.inf else np.nan


def _level(level: float, ratios: list[float], wanted: float) -> Evidence:
    median = float(np.median(ratios))
    numbers = {"median": median, "ratios": ratios}
    measured = f"{number(median)} times to {level:.3g}"
    return Evidence(f"{level:.3g}", measured, _about(ratios, wanted), numbers)


def _about(ratios: Sequence[float], wanted: float) -> Verdict:
    """Whether all seeds have about the ratio ``wanted``; a tie where they disagree."""
    near = {wanted / ABOUT <= ratio <= wanted * ABOUT for ratio in ratios}
    return Verdict.TIE if len(near) > 1 else decided(near.pop())
