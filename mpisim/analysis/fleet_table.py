"""Seconds to a target on fleets, over draws of their clients: a table and a picture."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from mpisim.analysis import fleet_seconds, formatting, style
from mpisim.analysis.costs import Target
from mpisim.analysis.curves import about_seconds
from mpisim.analysis.fleet_rounds import rounds_of
from mpisim.analysis.link_model import on_a_clock
from mpisim.analysis.run_groups import common_title, group_runs
from mpisim.comm.fleet import Fleet
from mpisim.core.errors import InputError
from mpisim.core.schema import require
from mpisim.core.terminal import report
from mpisim.runs.log.reader import Log, damaged

LEVELS = (5, 50, 95)  # per cent
HEAD = ["", "fleet", "until", "runs", *(f"seconds, p{level}" for level in LEVELS), "left out"]
LOW, HIGH = -0.25, 0.25  # where the first and the last fleet of a setting are drawn
LEFT_OUT = (
    "left out: messages that were dropped or late. The log is of a run in which they arrived."
)


class FleetCost(NamedTuple):
    """Seconds of a setting's runs until a target, over their seeds and draws of a fleet.

    seconds : each run on each draw, (runs x draws,); None unless all runs reach the target
    left_out : share of the messages until the target that were dropped or late
    """

    name: str
    fleet: Fleet
    target: Target
    runs: int
    seconds: np.ndarray | None
    left_out: float

    @property
    def levels(self) -> list[float | None]:
        """The quantiles `LEVELS` of the seconds."""
        if self.seconds is None:
            return [None] * len(LEVELS)
        return np.percentile(self.seconds, LEVELS).tolist()


def fleet_costs(
    logs: Sequence[Log],
    fleets: Sequence[Fleet],
    targets: Sequence[Target],
    draws: int = 20,
    ms: float | None = None,
) -> list[FleetCost]:
    """The costs of logs' settings on each fleet, drawn with its seed and the next ones.

    ms : FedScale's formula, with so many milliseconds of a sample's inference
    """
    costs: list[tuple[int, FleetCost]] = []  # with the number of the target
    for group in group_runs(logs, by_ranks=True):
        rows = []  # of each log: the first ones that meet the targets
        for log in group.logs:
            with damaged(log.path):
                rows.append([np.flatnonzero(t.met(log.column(t.y)))[:1] for t in targets])
        for fleet in fleets:
            seeds = range(fleet.seed, fleet.seed + draws)
            drawn: list[list[fleet_seconds.Seconds]] = []
            for log, firsts in zip(group.logs, rows, strict=True):
                rounds = rounds_of(log, fleet, ms) if any(map(len, firsts)) else None
                each = [fleet_seconds.seconds(rounds, fleet, s) for s in seeds] if rounds else []
                drawn.append(each)
            for number, target in enumerate(targets):
                there = [(one, of[number]) for one, of in zip(drawn, rows, strict=True)]
                reached = [(one, int(row[0])) for of, row in there if row.size for one in of]
                complete = all(row.size for _, row in there)
                seconds = np.array([one.seconds[row] for one, row in reached]) if complete else None
                shares = [one.left_out[row] for one, row in reached]
                share = float(np.mean(shares)) if reached else 0.0
                about = group.name, fleet, target, len(group.logs)
                costs.append((number, FleetCost(*about, seconds, share)))
    return [cost for _, cost in sorted(costs, key=itemgetter(0))]


def of_logs(logs: Sequence[Log]) -> list[dict[str, Any]]:
    """The tables [fleet] of logs, each once; `InputError` where no log has one."""
    tables = [log.config["fleet"] for log in logs if "fleet" in log.config]
    if not tables:
        raise InputError("--fleet: is needed, because no log has a table [fleet]; try mlab:world")
    return [table for i, table in enumerate(tables) if table not in tables[:i]]


class FleetCosts(formatting.Listing[FleetCost]):
    """The costs of logs' settings on fleets. Printed, it is the table of ``mpisim fleet``.

    Logs that ran on a fleet's clock are left out, with a line on standard error; `InputError` where
    none is left.

    targets : the last round of the shortest run unless given
    """

    left = 3

    def __init__(
        self,
        logs: Sequence[Log],
        fleets: Sequence[Fleet],
        targets: Sequence[Target] = (),
        draws: int = 20,
        ms: float | None = None,
    ):
        require(draws >= 1, "draws", draws, "an integer >= 1")
        if clocks := [log for log in logs if on_a_clock(log)]:
            more = f" and {len(clocks) - 1} more" if len(clocks) > 1 else ""
            why = "left out: ran on a fleet's clock; see simulated_seconds"
            line = f"{clocks[0].path}{more}: {why}"
            if len(clocks) == len(logs):
                raise InputError(line)
            report(line)
            logs = [log for log in logs if not on_a_clock(log)]
        self._logs, self._draws = logs, draws
        if not targets:
            last = min((int(log.columns["round"][-1]) for log in logs if log.rows), default=0)
            targets = [Target("round", last, rises=True)]
        super().__init__(fleet_costs(logs, fleets, targets, draws, ms))

    def _lines(self) -> tuple[list[str], list[str]]:
        title = common_title(group_runs(self._logs, by_ranks=True)).splitlines()
        notes = about_seconds(self._logs), LEFT_OUT * any(cost.left_out for cost in self)
        return title, [*filter(None, notes)]

    def _shown(self, form: str) -> formatting.Table:
        rows = []
        for c in self:
            levels = [formatting.number(level, 4) for level in c.levels]
            left_out = f"{100 * c.left_out:.2g}%"
            rows.append([c.name, str(c.fleet), str(c.target), str(c.runs), *levels, left_out])
        return HEAD, rows

    def _exact(self) -> formatting.Table:
        head = ["name", "fleet", "y", "target", "runs", "draws"]
        head += [*(f"seconds_p{level}" for level in LEVELS), "left_out"]
        starts = [[c.name, str(c.fleet), c.target.y, c.target.level, c.runs] for c in self]
        ends = [[self._draws, *c.levels, c.left_out] for c in self]
        return head, [start + end for start, end in zip(starts, ends, strict=True)]


def draw(logs: Sequence[Log], costs: Sequence[FleetCost]) -> Any:
    """A figure: for each setting and fleet, the median seconds, and a bar from p5 to p95."""
    style.check_installed()
    reached = [cost for cost in costs if cost.seconds is not None]
    ends = [level for cost in reached for level in cost.levels if level]
    if not ends:
        what = "no setting reaches the target after its start"
        raise InputError(f"--out: {what}: there is nothing to draw")
    several = len({cost.target for cost in costs}) > 1
    names = [f"{c.name}, {c.target}" if several else c.name for c in reached]
    places = {name: -place for place, name in enumerate(dict.fromkeys(names))}
    fleets = list(dict.fromkeys(str(cost.fleet) for cost in reached))
    offsets = np.linspace(HIGH, LOW, len(fleets)) if len(fleets) > 1 else [0.0]
    with style.styled():
        figure, panel = style.new_figure((8.0, 1.8 + 0.5 * len(places)))
        for number, fleet in enumerate(fleets):
            chosen = [i for i, cost in enumerate(reached) if str(cost.fleet) == fleet]
            low, middle, high = np.array([reached[i].levels for i in chosen], float).T
            heights = [places[names[i]] + offsets[number] for i in chosen]
            look = style.curve(number, 0, number, 1)
            bar = {"fmt": look["marker"], "color": look["color"], "capsize": 3.0}
            panel.errorbar(middle, heights, xerr=[middle - low, high - middle], label=fleet, **bar)
        labels = list(map(style.with_formulas, places))
        panel.set(yticks=list(places.values()), yticklabels=labels, xscale="log")
        panel.set_ylim(min(places.values()) - 0.6, 0.6)
        panel.set_xlim(min(ends) / 1.3, max(ends) * 1.3)
        style.log_ticks(panel.xaxis, *panel.get_xlim())
        until = "" if several else f" until {reached[0].target}"
        panel.set_xlabel(f"modelled seconds{until}: median, p5 to p95")
        title = common_title(group_runs(logs)) if len(fleets) > 1 else fleets[0]
        panel.set_title(style.with_formulas(title))
        style.place_legend(panel, may_grow=True)
        style.remark(figure, textwrap.fill(LEFT_OUT, 110) * any(c.left_out for c in reached))
    return figure
