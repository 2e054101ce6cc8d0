"""A.8.1: L_+ and L_± of linear regression on mg, over random splits among two workers.

measure_mg.py computes the constants; the file that it writes is what is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mpisim.analysis import panels, style
from mpisim.analysis.claims import Claim, Evidence, Verdict, decided, state
from mpisim.core.files import read_json

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
VALUES = "we get L_+ = 3609.6653 while L_± = 34.58"
SMALLER = "Clearly, L_± two orders smaller than L_+"
NEAR = 0.1  # of the paper's L_±: splits that have both of its numbers
ORDERS = 2  # of magnitude, to the nearest

Measured = dict[str, dict[str, np.ndarray]]


def read(folder: Path) -> Measured:
    """{data: {constant: values, shape (splits,)}}; `InputError` where nothing was measured."""
    hint = "`mpisim study run/permk mg` measures it"
    splits = read_json(folder / FILE, dict, hint, f"; {hint}")
    return {
        data: {key: np.array(constants[key]) for key in NAMES} for data, constants in splits.items()
    }


def draw(splits: Measured) -> Any:
    """A row for each data set with both constants, and the paper's values where they apply."""
    figure, grid = panels.grid(len(splits), len(NAMES))
    for row, (data, constants) in zip(grid, splits.items(), strict=True):
        for panel, (key, name) in zip(row, NAMES.items(), strict=True):
            panel.hist(constants[key], bins=30, color=style.COLOURS[0], zorder=2)
            panel.set_xlabel(name)
            if data != "mg_scale":
                panel.axvline(PAPER[key], color=style.COLOURS[1])
            panel.ticklabel_format(axis="x", useOffset=False)
        row[0].set_ylabel("splits")
        row[0].set_title(data, loc="left")
    panels.legend(figure, [("the paper's split", {"color": style.COLOURS[1]})])
    return figure


def claims(splits: Measured) -> Iterator[Claim]:
    """The paper's two numbers, for mg or what is inferred of it, and their ratio in all data."""
    data = UNSCALED if UNSCALED in splits else INFERRED
    evidence = []
    for key, name, what, within, share, digits in CONSTANTS:
        values = splits[data][key]
        low, high = (float(v) for v in np.percentile(values, within))
        measured = f"{low:{digits}} to {high:{digits}} {share} {len(values)} splits"
        measured += f", median {np.median(values):{digits}}"
        ends = {"low": low, "high": high}
        inside = decided(low <= PAPER[key] <= high)
        evidence.append(Evidence(f"{name} of a {what}", measured, inside, ends))
    evidence.append(_joint(splits[data]))
    numbers = f"L_+ = {PAPER['L_plus']} and L_± = {PAPER['L_pm']}"
    yield state(f"{numbers} are those of a split of {data}", VALUES, SOURCE, evidence)
    orders = [_orders(name, constants, name == data) for name, constants in splits.items()]
    yield state("L_± is two orders of magnitude smaller than L_+", SMALLER, SOURCE, orders)


def _joint(constants: dict[str, np.ndarray]) -> Evidence:
    """Whether the splits whose L_± is near the paper's have its L_+ among theirs."""
    near = constants["L_plus"][np.abs(constants["L_pm"] / PAPER["L_pm"] - 1) <= NEAR]
    if not near.size:
        return Evidence("both", "no split has an L_± near the paper's", Verdict.UNDECIDED)
    low, high = float(near.min()), float(near.max())
    measured = f"L_+ is {low:.8g} to {high:.8g} in the {len(near)} splits with L_± near the paper's"
    numbers = {"low": low, "high": high}
    return Evidence("both", measured, decided(low <= PAPER["L_plus"] <= high), numbers)


def _orders(data: str, constants: dict[str, np.ndarray], counts: bool) -> Evidence:
    """The paper speaks of mg; other data is reported beside it."""
    ratio = float(np.median(constants["L_plus"] / constants["L_pm"]))
    measured = f"{ratio:.3g} times, median over {len(constants['L_pm'])} splits"
    verdict = decided(round(np.log10(ratio)) == ORDERS)
    return Evidence(data, measured, verdict, {"ratio": ratio}, counts)
