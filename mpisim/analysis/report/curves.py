"""The curves of a report: for each pair of axes what `mpisim plot` would draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mpisim.analysis import style
from mpisim.analysis.curves import Axis, Curve, over_seeds
from mpisim.analysis.plot import colour_and_dash
from mpisim.analysis.report.axes import key
from mpisim.analysis.run_groups import RunGroup
from mpisim.analysis.targets import name_of
from mpisim.core.errors import InputError

NUMBERS = 250_000  # on a page, about 2 MB
FEWEST, MOST = 30, 300  # points of a curve
DIGITS, LARGEST = 5, 1e300  # JSON has no infinity, which a band may reach
WIDTH = 2  # pixels of a line
SHOWN = 12  # curves at first, evenly spread; the reader may add the others


def curves(groups: list[RunGroup], x: Sequence[Axis], y: Sequence[Axis]) -> list[dict[str, Any]]:
    """For each group its label, look and {x: {y: points}}, without pairs that cannot be drawn."""
    pairs = 4 * len(groups) * len(x) * len(y)  # x, y, low, high
    most = int(np.clip(NUMBERS // max(pairs, 1), FEWEST, MOST))
    shown = np.linspace(0, len(groups) - 1, min(SHOWN, len(groups))).round()
    return [
        {
            "label": group.label or name_of(group.logs[0]),
            "runs": len(group.logs),
            "shown": place in shown,
            **_look(*colour_and_dash(groups, place)),
            "points": {key(one): _over(group, one, y, most) for one in x},
        }
        for place, group in enumerate(groups)
    ]


def _over(group: RunGroup, x: Axis, ys: Sequence[Axis], most: int) -> dict[str, Any]:
    found = {}
    for y in ys:
        try:
            found[key(y)] = _points(over_seeds(group.logs, x, y), x.log, most)
        except InputError:  # a column that these runs lack, or nothing that the axes can show
            continue
    return found


def _points(curve: Curve, log: bool, most: int) -> dict[str, list[float]]:
    rows = _some(curve.x, log, most)
    own = {"x": curve.x, "y": curve.y, "low": curve.low, "high": curve.high}
    return {name: _short(values[rows]) for name, values in own.items() if values is not None}


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
