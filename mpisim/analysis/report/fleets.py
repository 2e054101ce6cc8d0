"""Seconds of a fleet on a page: the reader chooses clients, deadline and target."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from mpisim.analysis.costs import Target
from mpisim.analysis.fleet.rounds import on_a_clock
from mpisim.analysis.fleet.table import LEVELS, fleet_costs
from mpisim.analysis.run_groups import RunGroup
from mpisim.comm.fleet import Fleet

DEADLINES = (None, 0.1, 1.0, 10.0, 100.0)  # seconds
DRAWS = 5


def choices(
    groups: Sequence[RunGroup], fleets: Sequence[Fleet], targets: Sequence[Target]
) -> dict[str, Any]:
    """The choices, and for each fleet, deadline and target rows with the fastest setting first.

    A row is the setting's name, p5, median and p95 of the seconds, and the share left out. Settings
    that ran on a fleet's own clock, or do not reach the target, have no row.
    """
    logs = [log for group in groups for log in group.logs if not on_a_clock(log)]
    if not (logs and fleets and targets):
        return {}
    tables = []
    for fleet in fleets:
        for deadline in DEADLINES:
            one = dataclasses.replace(fleet, deadline=deadline)
            costs = fleet_costs(logs, [one], targets, DRAWS)
            for target in targets:
                rows = [
                    (one.name, *np.percentile(one.seconds, LEVELS), one.left_out)
                    for one in costs
                    if one.target == target and one.seconds is not None
                ]
                rows.sort(key=lambda row: row[2])
                tables.append([[name, *(float(f"{x:.4g}") for x in xs)] for name, *xs in rows])
    return {
        "fleet": [str(fleet) for fleet in fleets],
        "deadline": ["none", *(f"{deadline:g} s" for deadline in DEADLINES[1:])],
        "target": [str(target) for target in targets],
        "tables": tables,
    }
