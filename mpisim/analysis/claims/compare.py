"""Compares two methods at fixed targets, seed by seed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from mpisim.analysis.claims.verdicts import CLEAR, LARGEST, Evidence, Verdict, judge, number
from mpisim.analysis.curves import GRADIENT, Axis
from mpisim.analysis.remarks import WHY, oversubscribed
from mpisim.analysis.run_groups import one_setting
from mpisim.runs.log.reader import Log

Targets = tuple[float, ...]  # shares of the value at the start, falling
DECADES: Targets = tuple(10.0**-j for j in range(1, 31))
# For a loss whose minimum is far above 0.
TENTHS: Targets = tuple(j / 10 for j in range(9, 0, -1))
TAIL = 4  # the last quarter of the rows shows whether a run oscillates
FEWEST = 16  # rows; fewer show nothing
SHARE = 0.9  # of the rows of a tail: the others are not what decides
START = {
    "grad_norm_sq": "|grad f(x^0)|^2",
    "mean_grad_norm_sq": "|grad f(x^0)|^2",
    "distance_sq": "|x^0 - x*|^2",
    "loss": "f(x^0)",
}


@dataclasses.dataclass(frozen=True)
class Later(Axis):
    """An axis without what was spent in row 0, the exchange before round 0."""

    of: Axis = dataclasses.field(kw_only=True)

    def values(self, log: Log) -> np.ndarray:
        values = self.of.values(log)
        return values - values[0]


@dataclasses.dataclass(frozen=True)
class Reach:
    """A run's way down: ``y`` over the cost ``x``."""

    log: Log
    x: Axis
    y: Axis

    @cached_property
    def values(self) -> np.ndarray:
        """y of each row, shape (rows,)."""
        return self.y.values(self.log)

    @cached_property
    def budget(self) -> float:
        """What the whole run spent."""
        return float(self.x.values(self.log)[-1])

    @cached_property
    def floor(self) -> float:
        """The noise floor, 0 for a run that still falls when it ends.

        A run oscillates if the two halves of its last quarter overlap, but for a tenth of the rows
        of each: noise makes a falling run overlap where they meet. Its floor is the level that nine
        in ten of the rows of that quarter are at or below.
        """
        rows = len(self.values)
        if rows < FEWEST:
            return 0.0
        tail = self.values[-(rows // TAIL) :]
        first, second = tail[: len(tail) // 2], tail[len(tail) // 2 :]
        falls = np.quantile(second, SHARE) <= np.quantile(first, 1 - SHARE)
        return 0.0 if falls else float(np.quantile(tail, SHARE))

    def cost(self, level: float) -> float:
        """x in the first row with y <= level.

        Infinite where the run was cut off before, NaN where the level is below the noise floor.
        """
        if level < self.floor:
            return float("nan")
        below = np.flatnonzero(self.values <= level)
        return float(self.x.values(self.log)[below[0]]) if below.size else float("inf")


@dataclasses.dataclass(frozen=True)
class _Ratio:
    """What ``more`` needs over what ``less`` needs on one seed.

    bound : 1 where it is at least ``value``, as ``more`` was cut off; -1 where it is at most
    """

    value: float
    bound: int = 0


def compare(
    where: str,
    less: Sequence[Log],
    more: Sequence[Log],
    x: Axis,
    y: Axis = GRADIENT,
    targets: Targets = DECADES,
    x_more: Axis | None = None,
    paired: Callable[[Log, Log], bool] | None = None,
    over: Collection[str] = (),
) -> Evidence:
    """Evidence that ``less`` spends less on ``x`` than ``more`` to get down to a fixed target.

    Runs are compared on each seed that both have, once, at the deepest target that every seed
    decides. A run that was cut off above the target needs more than its budget, which decides where
    the other got there for less; the ratio at the deepest target that all reached, or the strongest
    bound, stands beside it. Targets below the noise floor of a run decide nothing. ``x_more`` is
    the axis of ``more`` where it is another one, and ``paired`` says which runs are compared if not
    those of the same seed: a method that draws nothing has one run for all seeds, say. A side whose
    runs differ in more than the seed and the keys ``over`` is refused: see `one_setting`.
    """
    both = pairs(less, more, x.timed, paired, over)
    if not both:
        return Evidence(where, "no seed has both runs", Verdict.UNDECIDED)
    if x.timed and oversubscribed(log for pair in both for log in pair):
        return Evidence(where, WHY, Verdict.UNDECIDED)
    runs = [(Reach(a, x, y), Reach(b, x_more or x, y)) for a, b in both]
    start = max(float(run.values[0]) for pair in runs for run in pair)
    ratios_at = {target: [_ratio(a, b, target * start) for a, b in runs] for target in targets}
    by_target = {t: [r for r in ratios if r] for t, ratios in ratios_at.items() if all(ratios)}
    several = len({seed(a) for a, _ in both}) > 1
    numbers = {
        "seeds": [seed(a) if several else seed(b) for a, b in both],
        "start": start,
        "floors": [[a.floor, b.floor] for a, b in runs],
        "by_target": {f"{t:g}": _numbers(ratios) for t, ratios in by_target.items()},
    }
    if not by_target:
        why = f"no run of a pair got to {targets[0]:g} of {_start(y)} within the other's budget"
        return Evidence(where, why, Verdict.UNDECIDED, numbers)
    target = min(by_target)
    ratios = by_target[target]
    numbers |= {"target": target, **_numbers(ratios)}
    numbers["costs"] = [[_finite(run.cost(target * start)) for run in pair] for pair in runs]
    measured = f"{_times(ratios)} to {target:g} of {_start(y)}"
    beside = _clearest(by_target)
    if beside != target:
        measured += f", {_times(by_target[beside])} to {beside:g}"
    return Evidence(where, measured, judge([r.value for r in ratios]), numbers)


def pairs(
    less: Sequence[Log],
    more: Sequence[Log],
    timed: bool = False,
    paired: Callable[[Log, Log], bool] | None = None,
    over: Collection[str] = (),
) -> list[tuple[Log, Log]]:
    """The runs of two settings that are compared, by default those of the same seed.

    `InputError` where a side is not `one_setting`, on one number of ranks if its seconds count.
    """
    paired = paired or (lambda a, b: seed(a) == seed(b))
    sides = [one_setting(side, timed, over) for side in (less, more)]
    return [(a, b) for a in sides[0] for b in sides[1] if paired(a, b)]


def _ratio(less: Reach, more: Reach, level: float) -> _Ratio | None:
    """The ratio of costs, or its bound; None where the level does not decide."""
    low, high = less.cost(level), more.cost(level)
    if np.isfinite(low) and np.isfinite(high):
        return _Ratio(high / low if low > 0 else float("inf") if high > 0 else 1.0)
    if np.isfinite(low) and np.isposinf(high) and more.budget > CLEAR * low:
        return _Ratio(more.budget / low if low > 0 else float("inf"), bound=1)
    if np.isposinf(low) and np.isfinite(high) and less.budget > CLEAR * high:
        return _Ratio(high / less.budget, bound=-1)
    return None


def _clearest(by_target: dict[float, list[_Ratio]]) -> float:
    """The deepest target that all reached; without one, that of the strongest bound."""
    exact = [t for t, ratios in by_target.items() if not any(ratio.bound for ratio in ratios)]
    if exact:
        return min(exact)
    medians = {t: float(np.median([r.value for r in ratios])) for t, ratios in by_target.items()}
    return max(by_target, key=lambda t: max(medians[t], 1 / max(medians[t], 1 / LARGEST)))


def _numbers(ratios: Sequence[_Ratio]) -> dict[str, Any]:
    values = np.array([ratio.value for ratio in ratios])
    return {
        "ratios": [_finite(value) for value in values],
        "bounds": [ratio.bound for ratio in ratios],
        "signs": np.sign(values - 1).astype(int).tolist(),
        "median": _finite(np.median(np.minimum(values, LARGEST))),
        "spread": [_finite(values.min()), _finite(values.max())],
    }


def _times(ratios: Sequence[_Ratio]) -> str:
    """``2.1 times (1.9 to 2.4, 5 seeds)``."""
    values = [ratio.value for ratio in ratios]
    bounds = {ratio.bound for ratio in ratios} - {0}
    mark = {frozenset({1}): "> ", frozenset({-1}): "< "}.get(frozenset(bounds), "")
    text = f"{mark}{number(float(np.median(values)))} times"
    if len(values) == 1:
        return text
    return f"{text} ({number(min(values))} to {number(max(values))}, {len(values)} seeds)"


def _start(y: Axis) -> str:
    return START.get(y.name, "the start")


def _finite(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def at_one_target(evidence: Sequence[Evidence]) -> tuple[float, list[float]]:
    """The deepest target that all reached in all evidence of `compare`, and the medians there.

    NaN and no medians where there is none.
    """
    exact = [
        {
            float(t): ratios["median"]
            for t, ratios in one.numbers.get("by_target", {}).items()
            if not any(ratios["bounds"]) and ratios["median"] is not None
        }
        for one in evidence
    ]
    common = set.intersection(*map(set, exact)) if exact else set()
    if not common:
        return float("nan"), []
    return min(common), [medians[min(common)] for medians in exact]


def with_alternative(evidence: Evidence, without: Evidence, what: str) -> Evidence:
    """``evidence``, and beside it the ratio that leaves ``what`` out if its verdict differs."""
    numbers = evidence.numbers | {"without_start": without.numbers}
    measured = evidence.measured
    if without.verdict is not evidence.verdict:
        measured += f"; without {what}: {without.measured}"
    return dataclasses.replace(evidence, measured=measured, numbers=numbers)


def seed(log: Log) -> int:
    """The seed of a run."""
    return int(log.attrs["seed"])


def needed(log: Log, x: Axis, level: float, y: Axis = GRADIENT) -> float:
    """x in the first logged row with y <= level; infinite without one."""
    below = np.flatnonzero(y.values(log) <= level)
    return float(x.values(log)[below[0]]) if below.size else float("inf")


def value_at(log: Log, y: Axis, x: Axis, budget: float) -> float:
    """y when at most ``budget`` was spent on x: the median of the last tenth of the rows so far."""
    within = y.values(log)[x.values(log) <= budget * (1 + 1e-9)]
    return float(np.median(within[-max(1, len(within) // 10) :]))
