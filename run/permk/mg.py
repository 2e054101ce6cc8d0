"""A.8.1: L_+ and L_± of linear regression on mg, over random splits among two workers.

measure_mg.py computes the constants; the file that it writes is what is drawn.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mpisim.analysis import panels, style
from mpisim.analysis.claims import Claim
from mpisim.core.errors import InputError

SOURCE = "PermK paper, A.8.1"
FILE = "splits.json"
UNSCALED, INFERRED = "mg", "mg, told from mg_scale"
PAPER = {"L_plus": 3609.6653, "L_pm": 34.58}
NAMES = {"L_plus": r"$L_+$", "L_pm": r"$L_\pm$"}
# Of each constant: the percentiles of the splits between which the paper's value should lie.
CONSTANTS = (
    ("L_plus", "L_+", "random split", (0, 100), "over", ".6g"),
    ("L_pm", "L_±", "typical random split", (5, 95), "in 90% of", ".4g"),
)
ORDERS = 2  # of magnitude, to the nearest

Measured = dict[str, dict[str, np.ndarray]]


def read(folder: Path) -> Measured:
    """{data: {constant: values, shape (splits,)}}; `InputError` where nothing was measured."""
    try:
        found = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        hint = "`mpisim study run/permk mg` measures it"
        raise InputError(f"{folder / FILE}: cannot be read: {error}; {hint}") from None
    return {data: {key: np.array(own[key]) for key in NAMES} for data, own in found.items()}


def draw(found: Measured) -> Any:
    """A row for each data set with both constants, and the paper's values where they apply."""
    figure, grid = panels.grid(len(found), len(NAMES))
    for row, (data, own) in zip(grid, found.items(), strict=True):
        for panel, (key, name) in zip(row, NAMES.items(), strict=True):
            panel.hist(own[key], bins=30, color=style.COLOURS[0], zorder=2)
            panel.set_xlabel(name)
            if data != "mg_scale":
                panel.axvline(PAPER[key], color=style.COLOURS[1])
            panel.ticklabel_format(axis="x", useOffset=False)
        row[0].set_ylabel("splits")
        row[0].set_title(data, loc="left")
    panels.legend(figure, [("the paper's split", {"color": style.COLOURS[1]})])
    return figure


def claims(found: Measured) -> Iterator[Claim]:
    """The paper's two numbers, for mg or what is inferred of it, and their ratio in all data."""
    data = UNSCALED if UNSCALED in found else INFERRED
    for key, name, what, within, share, digits in CONSTANTS:
        values = found[data][key]
        low, high = (float(v) for v in np.percentile(values, within))
        measured = f"{low:{digits}} to {high:{digits}} {share} {len(values)} splits"
        measured += f", median {np.median(values):{digits}}"
        text = f"{data}: {name} = {PAPER[key]} is that of a {what}"
        yield Claim(text, SOURCE, measured, low <= PAPER[key] <= high, {"low": low, "high": high})
    for data, own in found.items():
        ratio = float(np.median(own["L_plus"] / own["L_pm"]))
        text = f"{data}: L_± is two orders of magnitude smaller than L_+"
        measured = f"{ratio:.3g} times, median over {len(own['L_pm'])} splits"
        yield Claim(text, SOURCE, measured, round(np.log10(ratio)) == ORDERS, {"ratio": ratio})
