"""Compares two methods at fixed targets, seed by seed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from mpisim.analysis.claims.judging import CLEAR, again, fewest, finite
from mpisim.analysis.claims.verdicts import Evidence, Verdict
from mpisim.analysis.curves import FRAMING, GRADIENT, WHY, Axis, oversubscribed
from mpisim.analysis.formatting import TABLES
from mpisim.analysis.run_groups import one_setting
from mpisim.runs.log.reader import Log

Targets = tuple[float, ...]  # shares of the value at the start, falling
DECADES: Targets = tuple(10.0**-j for j in range(1, 31))
# For a loss whose minimum is far above 0.
TENTHS: Targets = tuple(j / 10 for j in range(9, 0, -1))
TAIL = 4  # the last quarter of the rows shows whether a run oscillates
SHORTEST = 16  # rows; fewer show nothing
DIGITS = 16  # of the digests on record
SHARE = 0.9  # of the rows of a tail: the others are not what decides
WIRE_BITS = 32  # of a number in a dense message
ROUNDING = 100  # times the machine epsilon: what is left of a gradient below it is rounding
SQUARES = ("grad_norm_sq", "mean_grad_norm_sq", "distance_sq")


@dataclasses.dataclass(frozen=True)
class Later(Axis):
    """An axis without what was spent in row 0, the exchange before round 0."""

    of: Axis = dataclasses.field(kw_only=True)

    def values(self, log: Log) -> np.ndarray:
        values = self.of.values(log)
        return values - values[0]


@dataclasses.dataclass(frozen=True)
class LaterBits(Axis):
    """Bits per worker without the 32 d of g^0, a dense message that is not in row 0."""

    def values(self, log: Log) -> np.ndarray:
        return np.maximum(super().values(log) - WIRE_BITS * int(log.attrs["dimension"]), 0)


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
        if rows < SHORTEST:
            return 0.0
        tail = self.values[-(rows // TAIL) :]
        first, second = tail[: len(tail) // 2], tail[len(tail) // 2 :]
        falls = np.quantile(second, SHARE) <= np.quantile(first, 1 - SHARE)
        return 0.0 if falls else float(np.quantile(tail, SHARE))

    @property
    def rounding(self) -> float:
        """The level below which y is rounding."""
        eps = float(np.finfo(self.log.config["run"].get("dtype", "float64")).eps)
        return float(self.values[0]) * (ROUNDING * eps) ** (2 if self.y.name in SQUARES else 1)

    def cost(self, level: float) -> float:
        """x in the first row with y <= level.

        Infinite where the run was cut off before, NaN where noise or rounding hides the level.
        """
        if level < max(self.floor, self.rounding):
            return float("nan")
        below = np.flatnonzero(self.values <= level)
        return float(self.x.values(self.log)[below[0]]) if below.size else float("inf")


class _Ratio(NamedTuple):
    """What ``more`` needs over what ``less`` needs on one seed.

    bound : 1 where it is at least ``value``, as ``more`` was cut off; -1 where it is at most
    """

    value: float
    bound: int = 0


Pairs = Sequence[tuple[Reach, Reach]]


def compare(
    where: str,
    less: Sequence[Log],
    more: Sequence[Log],
    x: Axis,
    y: Axis = GRADIENT,
    targets: Targets = DECADES,
    word: str = "fewer",
    first: tuple[Axis, Axis] | None = None,
    exact: bool = False,
) -> Evidence:
    """Evidence that ``less`` spends less on ``x`` than ``more`` to get down to fixed targets.

    Runs are compared on each seed that both have, at every target that every seed decides; `judge`
    makes the verdict. A target is a share of ``y`` at the start of its seed. A run that was cut off
    above it needs more than its budget, a bound where the other got there for less. Targets below
    the noise floor of a run, or where only rounding is left, decide nothing. The costs without row
    0, and with framing, are on record beside those on ``x``; ``first`` has the axes of both sides
    for the former where the first message is not in row 0. ``exact``: the runs draw nothing, and
    one stands for all seeds. A side whose runs differ in more than the seed is refused: see
    `one_setting`.
    """
    both = pairs(less, more, x.timed)
    if not both:
        return Evidence(where, "no seed has both runs", Verdict.UNDECIDED)
    if x.timed and oversubscribed(log for pair in both for log in pair):
        return Evidence(where, WHY, Verdict.UNDECIDED)
    runs = [(Reach(a, x, y), Reach(b, x, y)) for a, b in both]
    starts = [max(float(run.values[0]) for run in pair) for pair in runs]
    numbers: dict[str, Any] = {
        "seeds": [seed(a) for a, _ in both],
        "starts": starts,
        "of": TABLES["start"].get(y.name, "the start"),
        "first": targets[0],
        "floors": [[a.floor, b.floor] for a, b in runs],
        "by_target": _by_target(runs, targets, starts),
    }
    numbers["runs"] = digests(both)
    numbers["fewest"] = fewest(*zip(*both, strict=True))
    if exact:
        numbers["exact"] = True
    for name, (p, q) in _other_costs(x, both, first).items():
        others = [(Reach(a, p, y), Reach(b, q, y)) for a, b in both]
        numbers.setdefault("other_costs", {})[name] = _by_target(others, targets, starts)
    evidence = again(Evidence(where, "", Verdict.UNDECIDED, numbers, word=word))
    if "target" not in evidence.numbers:
        return evidence
    target = evidence.numbers["target"]
    each = zip(runs, starts, strict=True)
    costs = [[finite(run.cost(target * start)) for run in pair] for pair, start in each]
    return dataclasses.replace(evidence, numbers=evidence.numbers | {"costs": costs})


def _other_costs(
    x: Axis, both: Sequence[tuple[Log, Log]], first: tuple[Axis, Axis] | None
) -> dict[str, tuple[Axis, Axis]]:
    """Axes of the two sides for other costs than those on ``x``, where they differ from it."""
    others = {}
    if first is not None:
        others["row 0"] = first
    elif any(x.values(log)[0] > 0 for pair in both for log in pair):
        later = Later(x.name, x.log, of=x)
        others["row 0"] = later, later
    columns = FRAMING.get(x.name, ())
    has = all(name in log.columns for name in columns for pair in both for log in pair)
    if columns and not x.framing and has:
        framed = dataclasses.replace(x, framing=True)
        others["framing"] = framed, framed
    return others


def _by_target(runs: Pairs, targets: Targets, starts: Sequence[float]) -> dict[str, Any]:
    """{target: ratios and bounds, one for each seed}, of the targets that every seed decides."""
    table = {}
    for target in targets:
        each = [_ratio(*pair, target * start) for pair, start in zip(runs, starts, strict=True)]
        ratios = [one for one in each if one is not None]
        if len(ratios) == len(runs):
            values, bounds = [finite(one.value) for one in ratios], [one.bound for one in ratios]
            table[f"{target:g}"] = {"ratios": values, "bounds": bounds}
    return table


def pairs(less: Sequence[Log], more: Sequence[Log], timed: bool = False) -> list[tuple[Log, Log]]:
    """The runs of two settings that are compared: those of the same seed.

    `InputError` where a side is not `one_setting`, on one number of ranks if its seconds count.
    """
    sides = [one_setting(side, timed) for side in (less, more)]
    return [(a, b) for a in sides[0] for b in sides[1] if seed(a) == seed(b)]


def _ratio(less: Reach, more: Reach, level: float) -> _Ratio | None:
    """The ratio of costs, or its bound; None where the level does not decide."""

    def bounds(cut: Reach, cost: float) -> bool:
        """Whether a run that was cut off spent enough, and more than row 0, to give a bound."""
        return bool(cut.budget > cut.x.values(cut.log)[0] and cut.budget > CLEAR * cost)

    low, high = less.cost(level), more.cost(level)
    if np.isfinite(low) and np.isfinite(high):
        return _Ratio(high / low if low > 0 else float("inf") if high > 0 else 1.0)
    if np.isfinite(low) and np.isposinf(high) and bounds(more, low):
        return _Ratio(more.budget / low if low > 0 else float("inf"), bound=1)
    if np.isposinf(low) and np.isfinite(high) and bounds(less, high):
        return _Ratio(high / less.budget, bound=-1)
    return None


def digests(both: Iterable[tuple[Log, Log]]) -> dict[str, str]:
    """{name of a log: the first digits of `Log.digest`}, of the runs of a comparison."""
    return {log.path.stem: log.digest[:DIGITS] for pair in both for log in pair}


def seed(log: Log) -> int:
    """The seed of a run."""
    return int(log.attrs["seed"])


def needed(log: Log, x: Axis, level: float, y: Axis = GRADIENT) -> float:
    """x in the first logged row with y <= level; infinite without one."""
    below = np.flatnonzero(y.values(log) <= level)
    return float(x.values(log)[below[0]]) if below.size else float("inf")


def value_at(log: Log, y: Axis, x: Axis, budget: float) -> float:
    """y when at most ``budget`` was spent on x: the median of the last tenth of the rows so far.

    NaN where that is row 0 alone.
    """
    within = y.values(log)[x.values(log) <= budget * (1 + 1e-9)]
    if len(within) < 2:  # row 0 alone decides nothing
        return float("nan")
    return float(np.median(within[-max(1, len(within) // 10) :]))
