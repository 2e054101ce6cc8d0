"""Where the seconds of a round go, and what they would be on slower links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mpisim.analysis import panels, plot
from mpisim.analysis.curves import Axis, about_seconds
from mpisim.analysis.link_model import ModelledSeconds
from mpisim.analysis.study import data_sets
from mpisim.comm.clock import PHASES
from mpisim.comm.links import parse
from mpisim.runs.log.reader import Log

from .schemes import ERROR, LOOKS, RATIO, SECONDS, Groups, first, runs

ABLATIONS = ("DIANA (block quant)", "DIANA+ (block quant)", "DIANA+ (quant)")
SHOWN = [scheme for scheme in LOOKS if scheme not in ABLATIONS]
LINKS = {"1 Gbit/s": "1gbit", "100 Mbit/s": "100mbit", "10 Mbit/s": "10mbit"}
MODELLED = {
    f"modelled seconds, {text}": ModelledSeconds("seconds", log=True, links=parse(link))
    for text, link in LINKS.items()
}
COSTS: dict[str, Axis] = {"seconds, measured": SECONDS} | MODELLED
MILLISECOND = 1e-3


def draw(logs: Sequence[Log]) -> Any:
    """A column for each data set: the phases of a round, then the error over seconds."""
    groups = runs(logs, SECONDS)
    names = data_sets(groups)
    figure, grid = panels.grid(1 + len(COSTS), len(names))
    for number, (column, data) in enumerate(zip(grid.T, names, strict=True)):
        column[0].set_title(f"{data}, d = {first(groups, data).attrs['dimension']}")
        _phases(column[0], groups, data, named=number == 0)
        for panel, (text, cost) in zip(column[1:], COSTS.items(), strict=True):
            for scheme in SHOWN:
                if (data, scheme) in groups:
                    panels.curve(panel, groups[data, scheme], cost, ERROR, *LOOKS[scheme])
            panels.dress(panel, cost, ERROR, text)
    for panel in grid[1:, 0]:
        panel.set_ylabel(RATIO)
    looks = panels.entries_of({scheme: LOOKS[scheme] for scheme in SHOWN})
    looks += panels.colours_of(plot.COLOURS.items(), 6)
    panels.legend(figure, looks, "SAQ, Appendix B: seconds, measured and modelled", 5)
    panels.caption(
        figure, about_seconds([log for group in groups.values() for log in group]), len(names)
    )
    return figure


def _phases(panel: Any, groups: Groups, data: str, named: bool) -> None:
    """A bar for each scheme: mean milliseconds of a round by phase, on the slowest path."""
    schemes = [scheme for scheme in SHOWN if any(label == scheme for _, label in groups)]
    places = [place for place, scheme in enumerate(schemes) if (data, scheme) in groups]
    here = (groups[data, schemes[place]] for place in places)
    spent = [np.mean([plot.per_round(log) for log in logs], axis=0) for logs in here]
    left = np.zeros(len(places))
    for phase, widths in zip(PHASES, np.transpose(spent) / MILLISECOND, strict=True):
        panel.barh(places, widths, 0.7, left=left, color=plot.COLOURS[phase])
        left += widths
    panel.set_ylim(len(schemes) - 0.5, -0.5)
    panel.set_yticks(range(len(schemes)), schemes if named else [""] * len(schemes))
    panel.set_axisbelow(True)
    panel.grid(visible=False, axis="y")
    panel.set_xlabel("ms a round")
