"""What a page draws: for each pair of axes the curves of `mpisim plot`, and seconds of fleets."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from mpisim.analysis import style
from mpisim.analysis.costs import Target
from mpisim.analysis.curves import ABOVE, LABELS, Axis, framing_share, grows, over_seeds
from mpisim.analysis.fleet_table import LEVELS, fleet_costs
from mpisim.analysis.link_model import ModelledSeconds, on_a_clock, over_seconds
from mpisim.analysis.plot import colour_and_dash
from mpisim.analysis.run_groups import RunGroup
from mpisim.comm.fleet import Fleet
from mpisim.comm.links import Links
from mpisim.core.errors import InputError
from mpisim.runs.log.reader import Log

X = [Axis(n, n != "round") for n in ("bits_up", "bits_total", "round", "oracle_calls", "seconds")]
FIRST = "grad_norm_sq"  # the y axis that is shown first
PLAIN = {r"\|": "‖", r"\nabla ": "∇", r"^\star": "*", "$": ""}  # TeX in labels, as text
PLAIN |= {"^2": "²", "^k": "ᵏ", "^j": "ʲ"}
NUMBERS = 250_000  # on a page, about 2 MB
FEWEST, MOST = 30, 300  # points of a curve
DIGITS, LARGEST = 5, 1e300  # JSON has no infinity, which a band may reach
WIDTH = 2  # pixels of a line
DEADLINES = (None, 0.1, 1.0, 10.0, 100.0)  # seconds, of fleets
DRAWS = 5
SHOWN = 12  # curves at first, evenly spread; the reader may add the others


def x_axes(logs: Sequence[Log], networks: Sequence[Links]) -> list[Axis]:
    """Rounds, bits, gradients, measured and modelled seconds: those that a log has.

    Bits also with framing, where that is large.
    """
    modelled = [over_seconds(links) for links in networks]
    large = [axis for axis in X if any(framing_share(log, axis) > ABOVE for log in logs)]
    framed = [dataclasses.replace(axis, framing=True) for axis in large]
    return [axis for axis in (*X, *framed, *modelled) if any(_has(axis, log) for log in logs)]


def y_axes(logs: Sequence[Log]) -> list[Axis]:
    """Every column that is no cost, `FIRST` first; logarithmic where no value is below 0."""
    names = [name for log in logs for name in (*log.columns, "mean_grad_norm_sq")]
    axes = []
    for name in dict.fromkeys(sorted(names, key=lambda name: (name != FIRST, name not in LABELS))):
        values = [log.column(name) for log in logs if log.has(name)]
        if values and not grows(name):
            lowest = min(np.nanmin(column, initial=np.inf) for column in values)
            axes.append(Axis(name, log=bool(lowest >= 0) and not name.endswith("accuracy")))
    return axes


def key(axis: Axis) -> str:
    """A name of the axis that no other axis has."""
    if isinstance(axis, ModelledSeconds):
        return f"{axis.name}@{axis.links}"
    return axis.name + "+framing" * axis.framing


def described(axis: Axis, logs: Sequence[Log]) -> dict[str, Any]:
    """The axis for the page."""
    log = next(log for log in logs if _has(axis, log))
    return {"key": key(axis), "label": plain(axis.label(log)), "log": axis.log}


def plain(label: str) -> str:
    """The label of an axis without TeX."""
    for tex, text in PLAIN.items():
        label = label.replace(tex, text)
    return label


def _has(axis: Axis, log: Log) -> bool:
    try:
        return bool(log.rows and axis.values(log).size)
    except InputError:
        return False


def curves(groups: list[RunGroup], x: Sequence[Axis], y: Sequence[Axis]) -> list[dict[str, Any]]:
    """For each group its label, look and {x: {y: points}}, without pairs that cannot be drawn."""
    pairs = 4 * len(groups) * len(x) * len(y)  # x, y, low, high
    most = int(np.clip(NUMBERS // max(pairs, 1), FEWEST, MOST))
    shown = np.linspace(0, len(groups) - 1, min(SHOWN, len(groups))).round()
    return [
        {
            "label": group.name,
            "runs": len(group.logs),
            "shown": place in shown,
            **_look(*colour_and_dash(groups, place)),
            "points": {key(one): _over(group, one, y, most) for one in x},
        }
        for place, group in enumerate(groups)
    ]


def _over(group: RunGroup, x: Axis, ys: Sequence[Axis], most: int) -> dict[str, Any]:
    points = {}
    for y in ys:
        with suppress(InputError):  # they lack a column, or the axes cannot show anything
            curve = over_seeds(group.logs, x, y)
            rows, arrays = _some(curve.x, x.log, most), curve._asdict().items()  # x, y, low, high
            points[key(y)] = {n: _short(values[rows]) for n, values in arrays if values is not None}
    return points


def _some(x: np.ndarray, log: bool, most: int) -> np.ndarray:
    """Indices of at most ``most`` points, evenly spread over the axis, with the first and last."""
    if len(x) <= most:
        return np.arange(len(x))
    wanted = (np.geomspace if log else np.linspace)(x[0], x[-1], most)
    return np.unique([0, *np.searchsorted(x, wanted).clip(max=len(x) - 1), len(x) - 1])


def _short(values: np.ndarray) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in np.clip(values, -LARGEST, LARGEST)]


def _look(colour: int, dash: int) -> dict[str, str]:
    pattern = style.DASHES[dash % len(style.DASHES)]
    lengths = [] if isinstance(pattern, str) else pattern[1]
    return {
        "colour": style.COLOURS[colour % len(style.COLOURS)],
        "dash": " ".join(f"{WIDTH * length:g}" for length in lengths),
    }


def with_columns(groups: Sequence[RunGroup], targets: Sequence[Target]) -> list[RunGroup]:
    """The groups that have a row, and all columns of the costs and the targets."""
    needed = {"round", "bits_up", "seconds", *(target.y for target in targets)}
    begun = [(group, [log for log in group.logs if log.rows]) for group in groups]
    return [g for g, logs in begun if logs and all(log.has(n) for log in logs for n in needed)]


def choices(
    groups: Sequence[RunGroup], fleets: Sequence[Fleet], targets: Sequence[Target]
) -> dict[str, Any]:
    """The choices, and for each fleet, deadline and target rows with the fastest setting first.

    A row is the setting's name, p5, median and p95 of the seconds, and the share left out. Settings
    that ran on a fleet's own clock, or do not reach the target, have no row.
    """
    able = with_columns(groups, targets)
    logs = [log for group in able for log in group.logs if not on_a_clock(log)]
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
