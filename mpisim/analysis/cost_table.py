"""Tables of what methods spend until they reach targets, with the spread over seeds."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mpisim.analysis import csv_text, latex, markdown
from mpisim.analysis import framing as framing_of
from mpisim.analysis.curves import SENT, Axis
from mpisim.analysis.link_model import Links
from mpisim.analysis.modelled import ModelledSeconds, assumption
from mpisim.analysis.oversubscription import note
from mpisim.analysis.run_groups import RunGroup, common_title, group_runs
from mpisim.analysis.targets import SECONDS, Target, TargetCost, cost_to_reach, name_of
from mpisim.analysis.text import UNKNOWN, columns
from mpisim.runs.log.reader import Log, damaged
from mpisim.runs.signals import COMPLETE

COSTS = ("round", "bits_per_worker", "seconds")
LONG = 1e4  # from here on numbers are shown without a fraction
FORMATS = ("text", "markdown", "latex", "csv")


class Spread(NamedTuple):
    """Mean and sample standard deviation over seeds; the deviation of one run is None."""

    mean: float
    deviation: float | None


@dataclasses.dataclass(frozen=True)
class GroupCost:
    """What the runs of a setting, which differ in the seed, spend until a target.

    reached : number of runs, of ``runs``, that reach it; at_start : in their first row
    going : number of runs that are not complete
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


def costs_of(
    groups: Sequence[RunGroup],
    targets: Sequence[Target],
    clock: Axis = SECONDS,
    sent: Axis = SENT,
) -> list[GroupCost]:
    """For each target the cost of each group of runs; ``clock`` counts seconds, ``sent`` bits."""
    return [_cost(group, target, clock, sent) for target in targets for group in groups]


def table(
    logs: Sequence[Log],
    targets: Sequence[Target],
    form: str = "text",
    network: Links | None = None,
    framing: bool = False,
) -> str:
    """The costs of logs until targets, in one of `FORMATS`, with a line where seconds say little
    or framing is left out that is large.

    With a ``network``, seconds are those that the runs would take there by `link_model`. With
    ``framing``, bits are payload and framing. Raises `InputError` for a column that a log does not
    have.
    """
    groups = group_runs(logs, by_ranks=True)
    clock = SECONDS if network is None else ModelledSeconds("seconds", True, links=network)
    sent = dataclasses.replace(SENT, framing=framing)
    costs = costs_of(groups, targets, clock, sent)
    remarks = [note(logs), framing_of.note(groups, [sent])]
    remarks += [assumption(logs)] if network is not None else []
    more = "_with_framing" * framing
    if form == "csv":
        return csv_text.table(*_exact(costs, network, more))
    head, rows = shown(costs, clock.label(logs[0]), f"kbit/worker{more.replace('_', ' ')}")
    if form == "latex":
        comment = [f"% {line}" for line in filter(None, [*_title(groups), *remarks])]
        return "\n".join([*comment, latex.table(head, rows)])
    if form == "markdown":
        body = markdown.table(head, [[markdown.escaped(cell) for cell in row] for row in rows])
        return "\n\n".join(filter(None, [body, *remarks]))
    right = tuple(range(1, len(head)))
    body = columns([tuple(head), *map(tuple, rows)], right, indent="")
    return "\n".join(filter(None, [*_title(groups), body, *remarks]))


def shown(
    costs: Sequence[GroupCost], seconds: str = "seconds", bits: str = "kbit/worker"
) -> tuple[list[str], list[list[str]]]:
    """Head and rows of a table to look at: kbit per worker, numbers with few digits."""
    head = ["", "until", "runs", "rounds", bits, seconds]
    return head, [_row(cost) for cost in costs]


def _title(groups: list[RunGroup]) -> list[str]:
    return common_title(groups).splitlines()


def _cost(group: RunGroup, target: Target, clock: Axis, sent: Axis) -> GroupCost:
    found: list[TargetCost] = []
    for log in group.logs:
        with damaged(log.path):
            found.append(cost_to_reach(log, target, clock, sent))
    reached = [cost for cost in found if cost.round is not None]
    spreads = {name: _spread([getattr(cost, name) for cost in reached]) for name in COSTS}
    worst = np.min if target.rises else np.max
    return GroupCost(
        group.label or name_of(group.logs[0]),
        target,
        len(found),
        len(reached),
        sum(bool(target.met(log.column(target.y)[:1]).any()) for log in group.logs),
        sum(log.attrs.get("status") not in COMPLETE for log in group.logs),
        spreads if len(reached) == len(found) else {},
        float(worst([cost.last for cost in found])),  # NaN where a run diverged
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
        return [*start, f"{few}: ended at {worst}{at_once}{going}", UNKNOWN, UNKNOWN]
    rounds, bits, seconds = (cost.costs[name] for name in COSTS)
    kbit = Spread(bits.mean / 1e3, bits.deviation and bits.deviation / 1e3)
    return [*start, _text(rounds) + at_once, *map(_text, (kbit, seconds))]


def _text(spread: Spread) -> str:
    return " ± ".join(_number(value) for value in spread if value is not None)


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= LONG else f"{value:.4g}"


def _exact(
    costs: Sequence[GroupCost], network: Links | None, more: str
) -> tuple[list[str], list[list[object]]]:
    named = [name + more * (name == "bits_per_worker") for name in COSTS]
    spreads = [name for cost in named for name in (cost, f"{cost}_deviation")]
    head = ["name", "y", "target", "runs", "reached", *spreads]
    head += ["network", "worst_end", "sign", "at_start"]
    rows: list[list[object]] = [
        [
            *(cost.name, cost.target.y, cost.target.level, cost.runs, cost.reached),
            *(value for name in COSTS for value in (cost.costs.get(name) or (None, None))),
            network,
            *(cost.worst, ">=" if cost.target.rises else "<=", cost.at_start),
        ]
        for cost in costs
    ]
    return head, rows
