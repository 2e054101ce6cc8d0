"""What methods spend until they reach targets: rounds, bits and seconds, over seeds."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mpisim.analysis import formatting, remarks
from mpisim.analysis.curves import LABELS, SENT, Axis, grows
from mpisim.analysis.link_model import over_seconds
from mpisim.analysis.run_groups import RunGroup, common_title, group_runs, name_of
from mpisim.analysis.settings import cell, settings, settings_of
from mpisim.comm.links import Links
from mpisim.core.errors import InputError
from mpisim.core.terminal import one_line
from mpisim.runs.log.reader import Log, damaged
from mpisim.runs.signals import COMPLETE

SECONDS = Axis("seconds", log=True)  # measured
FORM = re.compile(r"\s*(?P<y>[^<>=\s]+)\s*(?P<sign><=|>=|=)\s*(?P<level>[^<>=\s]+)\s*")
SEED = "run.seed"
COSTS = ("round", "bits_per_worker", "seconds")
LONG = 1e4  # from here on numbers are shown without a fraction


@dataclasses.dataclass(frozen=True)
class Target:
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
        return f"{label[:-1]} {sign} {level}$" if label.endswith("$") else str(self)

    def met(self, values: np.ndarray) -> np.ndarray:
        """Whether each row meets it, shape (rows,)."""
        return values >= self.level if self.rises else values <= self.level


def parse(text: str, where: str = "--target") -> Target:
    """The target in a text: ``grad_norm_sq<=1e-3``, or ``test_accuracy=0.9``.

    With ``=`` the column has its own direction: accuracies rise, all others fall. What a run spends
    grows in any case, and can only be at least a level. `InputError` says what is allowed.
    """
    parts = FORM.fullmatch(text)
    try:
        level = float(parts["level"]) if parts else math.nan
    except ValueError:
        level = math.nan
    if parts is None or not math.isfinite(level):
        raise InputError(
            f"{where}: {text!r} is not allowed; it must be COLUMN=LEVEL, COLUMN<=LEVEL or"
            " COLUMN>=LEVEL, such as grad_norm_sq=1e-3"
        )
    y, sign = parts["y"], parts["sign"]
    if grows(y) and sign != ">=":
        raise InputError(
            f"{where}: {text!r} is not allowed; {y} grows with the rounds: it must be"
            f" {y}>={parts['level']}, or a target of a column that falls, such as grad_norm_sq=1e-3"
        )
    return Target(y, level, sign == ">=" or (sign == "=" and "accuracy" in y))


@dataclasses.dataclass(frozen=True)
class TargetCost:
    """What a run had spent in its first logged row that meets a target.

    name : method and compressor
    round : None where the run never reached the target
    bits_per_worker, seconds : bits up, payload unless they have framing, and the time, measured
        unless another clock counts it; NaN where the target was not reached
    last : ``y`` in the last row
    """

    name: str
    round: int | None
    bits_per_worker: float
    seconds: float
    last: float


def cost_to_reach(log: Log, target: Target, clock: Axis = SECONDS, sent: Axis = SENT) -> TargetCost:
    """The cost until the first row that meets the target.

    ``clock`` counts the seconds, and ``sent`` the bits.
    """
    values = log.column(target.y)
    if not values.size:
        raise InputError(f"{log.path}: the log has no row yet")
    name, last = name_of(log), float(values[-1])
    met = np.flatnonzero(target.met(values))
    if met.size == 0:
        return TargetCost(name, None, np.nan, np.nan, last)
    row = met[0]
    bits, seconds = sent.values(log)[row], float(clock.values(log)[row])
    return TargetCost(name, int(log.columns["round"][row]), bits, seconds, last)


class Spread(NamedTuple):
    """Mean and sample standard deviation over seeds; the deviation of one run is None."""

    mean: float
    deviation: float | None

    def __str__(self) -> str:
        return " ± ".join(
            f"{value:.0f}" if abs(value) >= LONG else f"{value:.4g}"
            for value in self
            if value is not None
        )


@dataclasses.dataclass(frozen=True)
class GroupCost:
    """What the runs of a setting, which differ in the seed, spend until a target.

    reached : number of runs, of ``runs``, that reach it; at_start : in their first row
    going : number of runs that are not complete
    medians : {name in `COSTS`: median over the runs}; empty as ``costs``
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
    medians: dict[str, float]
    settings: dict[str, Any]

    @property
    def round(self) -> float | None:
        """The mean number of rounds; None unless all runs reach the target."""
        return self.costs["round"].mean if self.costs else None

    @property
    def bits_per_worker(self) -> float:
        """The mean bits sent by a worker; NaN unless all runs reach the target."""
        return self.costs["bits_per_worker"].mean if self.costs else math.nan

    @property
    def seconds(self) -> float:
        """The mean seconds; NaN unless all runs reach the target."""
        return self.costs["seconds"].mean if self.costs else math.nan


def costs_of(
    groups: Sequence[RunGroup],
    targets: Sequence[Target],
    clock: Axis = SECONDS,
    sent: Axis = SENT,
) -> list[GroupCost]:
    """For each target the cost of each group of runs; ``clock`` counts seconds, ``sent`` bits."""
    known = [settings_of(group.logs[0].config) for group in groups]
    names = [n for n in settings(group.logs[0].config for group in groups).varied if n != SEED]
    chosen = [{name: cell(one[name]) for name in names if name in one} for one in known]
    return [
        _cost(group, target, clock, sent, own)
        for target in targets
        for group, own in zip(groups, chosen, strict=True)
    ]


def costs_between(
    logs: Sequence[Log], targets: Sequence[Target], network: Links | None, framing: bool
) -> list[GroupCost]:
    """`costs_of` the groups of logs, with seconds modelled for a ``network`` unless it is None."""
    sent = dataclasses.replace(SENT, framing=framing)
    return costs_of(group_runs(logs, by_ranks=True), targets, over_seconds(network), sent)


def cost_table(
    logs: Sequence[Log],
    targets: Sequence[Target],
    form: str = "text",
    network: Links | None = None,
    framing: bool = False,
    siunitx: bool = False,
) -> str:
    """The costs of logs until targets, in one of `formatting.FORMATS`, with a line where seconds
    say little or framing is left out that is large.

    With a ``network``, seconds are those that the runs would take there by `link_model`. With
    ``framing``, bits are payload and framing. ``siunitx`` is for LaTeX. Raises `InputError` for a
    column that a log does not have.
    """
    groups = group_runs(logs, by_ranks=True)
    clock, sent = over_seconds(network), dataclasses.replace(SENT, framing=framing)
    costs = costs_between(logs, targets, network, framing)
    more = "_with_framing" * framing
    if form == "csv":
        head, rows = exact(costs, network, more)
        return formatting.table(head, rows, form)
    title = common_title(groups).splitlines()
    notes = [remarks.about_seconds(logs), remarks.about_framing(groups, [sent])]
    notes += [remarks.about_model(logs)] if network is not None else []
    head, rows = shown(costs, clock.label(logs[0]), f"kbit/worker{more.replace('_', ' ')}")
    if form == "markdown":
        rows = [[formatting.escaped(cell) for cell in row] for row in rows]
        notes = [formatting.escaped(note) for note in notes if note]
        return "\n\n".join([formatting.table(head, rows, form), *notes])
    if form == "latex":
        levels = [cost.target.formula() for cost in costs]
        rows = [[name, level, *row] for (name, _, *row), level in zip(rows, levels, strict=True)]
        body = formatting.latex(head, rows, range(1, len(head)), siunitx)
        comments = [f"% {one_line(line)}" for line in (*title, *notes) if line]
        return "\n".join([*comments, body])
    body = formatting.table(head, rows, form, right=range(1, len(head)))
    return "\n".join(filter(None, [*title, body, *notes]))


def shown(
    costs: Sequence[GroupCost], seconds: str = "seconds", bits: str = "kbit/worker"
) -> tuple[list[str], list[list[str]]]:
    """Head and rows of a table to look at: kbit per worker, numbers with few digits."""
    head = ["", "until", "runs", "rounds", bits, seconds]
    return head, [_row(cost) for cost in costs]


def _cost(
    group: RunGroup, target: Target, clock: Axis, sent: Axis, own: dict[str, Any]
) -> GroupCost:
    costs: list[TargetCost] = []
    for log in group.logs:
        with damaged(log.path):
            costs.append(cost_to_reach(log, target, clock, sent))
    reached = [cost for cost in costs if cost.round is not None]
    spreads = {name: _spread([getattr(cost, name) for cost in reached]) for name in COSTS}
    complete = len(reached) == len(costs)
    medians = {
        name: float(np.median([getattr(cost, name) for cost in reached]))
        for name in (COSTS if complete else ())
    }
    worst = np.min if target.rises else np.max
    return GroupCost(
        group.name,
        target,
        len(costs),
        len(reached),
        sum(bool(target.met(log.column(target.y)[:1]).any()) for log in group.logs),
        sum(log.attrs.get("status") not in COMPLETE for log in group.logs),
        spreads if complete else {},
        float(worst([cost.last for cost in costs])),  # NaN where a run diverged
        medians,
        own,
    )


def _spread(values: Sequence[float]) -> Spread:
    if not values:
        return Spread(np.nan, None)
    return Spread(float(np.mean(values)), float(np.std(values, ddof=1)) if values[1:] else None)


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
    kbit = Spread(bits.mean / 1e3, bits.deviation and bits.deviation / 1e3)
    return [*start, f"{rounds}{at_once}", str(kbit), str(seconds)]


def exact(
    costs: Sequence[GroupCost], network: Links | None, more: str
) -> tuple[list[str], list[list[Any]]]:
    """Head and rows of the table in CSV."""
    named = [name + more * (name == "bits_per_worker") for name in COSTS]
    spreads = [column for name in named for column in (name, f"{name}_deviation")]
    head = ["name", "y", "target", "runs", "reached", *spreads]
    head += ["network", "worst_end", "sign", "at_start"]
    head += [f"{name}_median" for name in named]
    names = [*dict.fromkeys(name for cost in costs for name in cost.settings)]
    rows: list[list[Any]] = [
        [
            *(cost.name, cost.target.y, cost.target.level, cost.runs, cost.reached),
            *(value for name in COSTS for value in (cost.costs.get(name) or (None, None))),
            network,
            *(cost.worst, ">=" if cost.target.rises else "<=", cost.at_start),
            *(cost.medians.get(name) for name in COSTS),
            *(cost.settings.get(name) for name in names),
        ]
        for cost in costs
    ]
    return [*head, *names], rows
