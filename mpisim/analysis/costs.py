"""What methods spend until they reach targets: rounds, bits and seconds, over seeds."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from mpisim.analysis import formatting
from mpisim.analysis.curves import LABELS, SENT, Axis, grows, remarks
from mpisim.analysis.labels import columns
from mpisim.analysis.link_model import over_seconds
from mpisim.analysis.run_groups import RunGroup, common_title, group_runs
from mpisim.comm.links import Links
from mpisim.core.errors import InputError
from mpisim.runs.log.reader import Log, damaged
from mpisim.runs.stop import COMPLETE

SECONDS = Axis("seconds", log=True)  # measured
FORM = re.compile(r"\s*(?P<y>[^<>=\s]+)\s*(?P<sign><=|>=|=)\s*(?P<level>[^<>=\s]+)\s*")
COSTS = ("round", "bits_per_worker", "seconds")
ROUNDING = 1e-12
LONG = 1e4  # from here on numbers are shown without a fraction


class Target(NamedTuple):
    """A level for a column of the logs, reached in the first row with ``y`` <= level.

    With ``rises`` in the first one with ``y`` >= level.
    """

    y: str
    level: float
    rises: bool = False

    def __str__(self) -> str:
        return f"{self.y} {'≥' if self.rises else '≤'} {self.level:.6g}"

    def formula(self) -> str:
        """The same, with the column's formula in LaTeX where it has one."""
        label, (digits, power) = LABELS.get(self.y, ""), f"{self.level:.5e}".split("e")
        level = f"{float(digits):g}e{power}" if abs(int(power)) > 1 else f"{self.level:.6g}"
        sign = "≥" if self.rises else "≤"
        if not label.endswith("$"):
            return str(self)
        alone = label.startswith("$") and label.count("$") == 2
        return f"{label[:-1]} {sign} {level}$" if alone else f"{label} ${sign} {level}$"

    def met(self, values: np.ndarray) -> np.ndarray:
        """Whether each row meets it, shape (rows,)."""
        return values >= self.level if self.rises else values <= self.level


def parse(text: str, where: str = "--target") -> Target:
    """The target in a text: ``grad_norm_sq<=1e-3``, or ``test_accuracy=0.9``.

    With ``=`` the column has its own direction: accuracies rise, all others fall. What a run spends
    grows in any case, and can only be at least a level. `InputError` says what is allowed.
    """
    parts, level = FORM.fullmatch(text), math.nan
    with suppress(ValueError):
        level = float(parts["level"]) if parts else math.nan
    if parts is None or not math.isfinite(level):
        forms = "COLUMN=LEVEL, COLUMN<=LEVEL or COLUMN>=LEVEL, such as grad_norm_sq=1e-3"
        raise InputError(f"{where}: {text!r} is not allowed; it must be {forms}")
    y, sign = parts["y"], parts["sign"]
    if grows(y) and sign != ">=":
        other = "or a target of a column that falls, such as grad_norm_sq=1e-3"
        why = f"{y} grows with the rounds: it must be {y}>={parts['level']}, {other}"
        raise InputError(f"{where}: {text!r} is not allowed; {why}")
    return Target(y, level, sign == ">=" or (sign == "=" and "accuracy" in y))


def targets(given: float | str | Sequence[float | str], y: str) -> list[Target]:
    """Targets from levels of column ``y`` and from texts, one or several."""
    several = [given] if isinstance(given, str | int | float | np.number) else given
    texts = [one if isinstance(one, str) else f"{y}={float(one)!r}" for one in several]
    return [parse(text, "target") for text in texts]


class Spread(NamedTuple):
    """Mean, sample standard deviation and median over seeds; the deviation of one run is None."""

    mean: float
    deviation: float | None
    median: float

    def __str__(self) -> str:
        shown = [value for value in (self.mean, self.deviation) if value is not None]
        return " ± ".join(f"{v:.0f}" if abs(v) >= LONG else f"{v:.4g}" for v in shown)

    @classmethod
    def of(cls, values: np.ndarray) -> Spread:
        """The spread of values (runs,); a deviation of less than `ROUNDING` of the mean is 0."""
        mean = float(np.mean(values))
        deviation = float(np.std(values, ddof=1)) if len(values) > 1 else None
        if deviation is not None and deviation < ROUNDING * abs(mean):
            deviation = 0.0
        return cls(mean, deviation, float(np.median(values)))


class GroupCost(NamedTuple):
    """What the runs of a setting, which differ in the seed, spend until a target.

    reached : number of runs, of ``runs``, that reach it; at_start : in their first row
    going : number of runs that are not complete
    settings : {TABLE.KEY: value} of the settings that vary between the groups
    costs : {name in `COSTS`: spread}; empty unless all runs reach the target, since a mean over
        those that do would flatter the method
    worst : the y that is farthest from the target in the last row of a run
    """

    name: str
    target: Target
    runs: int
    reached: int
    at_start: int
    going: int
    costs: dict[str, Spread]
    worst: float
    settings: dict[str, Any]


def costs_of(
    groups: Sequence[RunGroup], targets: Sequence[Target], axes: Sequence[Axis] = (SENT, SECONDS)
) -> list[GroupCost]:
    """For each target the cost of each group of runs; ``axes`` count bits and seconds."""
    varied = columns([group.logs[0].config for group in groups])
    alike = [{n: v[i] for n, v in varied.items() if n in g.keys} for i, g in enumerate(groups)]
    return [
        _cost(group, target, axes, settings)
        for target in targets
        for group, settings in zip(groups, alike, strict=True)
    ]


def _cost(
    group: RunGroup, target: Target, axes: Sequence[Axis], varied: dict[str, Any]
) -> GroupCost:
    spent: list[tuple[float, ...]] = []
    values = []
    for log in group.logs:
        with damaged(log.path):
            y = log.column(target.y)
            values.append(y)
            columns = [log.columns["round"], *(axis.values(log) for axis in axes)]
            for row in np.flatnonzero(target.met(y))[:1]:
                spent.append(tuple(float(column[row]) for column in columns))
    at_start = sum(bool(target.met(y[:1]).any()) for y in values)
    going = sum(log.attrs.get("status") not in COMPLETE for log in group.logs)
    spreads = map(Spread.of, np.transpose(spent)) if len(spent) == len(values) else ()
    costs = dict(zip(COSTS, spreads, strict=False))
    ends = [y[-1] if y.size else math.nan for y in values]
    worst = np.min(ends) if target.rises else np.max(ends)  # NaN where one diverged or has no row
    counts = len(values), len(spent), at_start, going
    return GroupCost(group.name, target, *counts, costs, float(worst), varied)


class Costs(formatting.Listing[GroupCost]):
    """What runs spend until targets, a cost for each target and group of runs.

    Printed, it is the table of ``mpisim show --target``. With a ``network``, seconds are those that
    the runs would take there by `link_model`. With ``framing``, bits are payload and framing.
    Raises `InputError` for a column that a log does not have.
    """

    def __init__(
        self,
        logs: Sequence[Log],
        targets: Sequence[Target],
        network: Links | None = None,
        framing: bool = False,
    ):
        self._logs, self._network = logs, network
        self._groups = group_runs(logs, by_ranks=True)
        self._clock, self._sent = over_seconds(network), dataclasses.replace(SENT, framing=framing)
        super().__init__(costs_of(self._groups, targets, [self._sent, self._clock]))

    def _lines(self) -> tuple[list[str], list[str]]:
        notes = remarks(self._logs, self._groups, [self._clock, self._sent])
        return common_title(self._groups).splitlines(), notes

    def _shown(self, form: str) -> formatting.Table:
        bits = "kbit/worker" + " with framing" * self._sent.framing
        head, rows = shown(self, self._clock.label(self._logs[0]), bits)
        for row, cost in zip(rows, self if form == "latex" else (), strict=False):
            row[1] = cost.target.formula()
        return head, rows

    def _exact(self) -> formatting.Table:
        """Mean, sample deviation and median over runs, their number, the settings that vary."""
        more = "_with_framing" * self._sent.framing
        rows = []
        for cost in self:
            target, medians = cost.target, dict[str, Any]()
            row: dict[str, Any] = {"name": cost.name, "y": target.y, "target": target.level}
            row |= {"runs": cost.runs, "reached": cost.reached}
            for name in COSTS:
                column = name + more * (name == "bits_per_worker")
                spread = cost.costs.get(name, (None, None, None))
                row[column], row[f"{column}_deviation"], medians[f"{column}_median"] = spread
            row |= {"network": self._network, "worst_end": cost.worst}
            row |= {"sign": ">=" if target.rises else "<=", "at_start": cost.at_start}
            rows.append(row | medians | cost.settings)
        head = [*dict.fromkeys(name for row in rows for name in row)]
        return head, [[row.get(name) for name in head] for row in rows]


def shown(
    costs: Sequence[GroupCost], seconds: str = "seconds", bits: str = "kbit/worker"
) -> tuple[list[str], list[list[str]]]:
    """Head and rows of a table to look at: kbit per worker, numbers with few digits."""
    head = ["", "until", "runs", "rounds", bits, seconds]
    return head, [_row(cost) for cost in costs]


def _row(cost: GroupCost) -> list[str]:
    start = [cost.name, str(cost.target), str(cost.runs)]
    at_once = ", met at the start" if cost.at_start else ""
    at_once += f" by {cost.at_start} of {cost.runs}" if 0 < cost.at_start < cost.runs else ""
    if not cost.costs:
        few = f"{cost.reached} of {cost.runs} runs reach it" if cost.reached else "not reached"
        worst = f"{cost.worst:.2g}"
        if cost.target.met(np.array([float(worst)])).any():  # it is not, before it is rounded
            worst = f"{cost.worst:.6g}"
        going = f", {cost.going} not complete" if cost.going else ""
        text = f"{few}: ended at {worst}{at_once}{going}"
        return [*start, text, formatting.UNKNOWN, formatting.UNKNOWN]
    rounds, bits, seconds = (cost.costs[name] for name in COSTS)
    kbit = bits._replace(mean=bits.mean / 1e3, deviation=bits.deviation and bits.deviation / 1e3)
    return [*start, f"{rounds}{at_once}", str(kbit), str(seconds)]
