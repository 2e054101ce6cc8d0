"""MARINA: faster non-convex distributed learning with compression."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mpisim.analysis import panels
from mpisim.analysis.claims import number
from mpisim.analysis.study import Figure, Grid, Measurement
from mpisim.core.files import read_json

from . import fig1, fig2

TABLES = "tables.json"  # of what the published code of Figure 1 changes: measure_evidence.py
Table = list[list[str | float]]  # the first row is the head
ROW = 0.22  # inches


def read(folder: Path) -> list[Table]:
    """The tables; `InputError` where nothing was measured."""
    hint = "`mpisim study run/marina evidence` measures it"
    return read_json(folder / TABLES, list, hint, f"; {hint}")


def draw(tables: list[Table]) -> Any:
    """The tables, one below the other."""
    from matplotlib.figure import Figure

    rows = [len(table) for table in tables]
    figure = Figure(figsize=(7.5, ROW * sum(rows) + 0.5), layout="constrained")
    shown = figure.subplots(len(tables), 1, height_ratios=rows)
    for panel, (head, *body) in zip(shown, tables, strict=True):
        cells = [[c if isinstance(c, str) else number(c) for c in row] for row in body]
        widths = [0.4] + [0.6 / (len(head) - 1)] * (len(head) - 1)
        panels.table(panel, cells, 1.1, colLabels=head, colWidths=widths)
    return figure


# Paper: the published number of rounds for all, whatever stops the quick runs. Rows every 10 rounds
# place each target within 1% of the costs that decide, in 250 MB of logs.
PAPER = ["run.rounds=40000", "run.log_every=10", "run.stop={}"]
FIG1 = Grid("fig1", {"quick": [], "paper": PAPER})
IMAGES = {"cifar10-part": "generated"}
FIG2 = Grid("fig2", {"quick": [], "paper": []}, files={"paper": "fig2-paper"}, instead=IMAGES)
EVIDENCE = Measurement(
    f"{__package__}.measure_evidence", "logs/marina-evidence", {"quick": 1000}, read
)
TITLE = "MARINA against DIANA, VR-MARINA against VR-DIANA"
FIGURES = [
    Figure("fig1", TITLE, FIG1, fig1.draw, fig1.claims),
    Figure("fig2", "VR-MARINA against VR-DIANA, training a network", FIG2, fig2.draw, fig2.claims),
    Figure("evidence", "what the published code of Figure 1 changes", EVIDENCE, draw),
]
