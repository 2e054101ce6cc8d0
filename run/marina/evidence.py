"""What the published code of Figure 1 changes, as tables; measure_evidence.py measures it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mpisim.analysis import panels
from mpisim.analysis.claims import Claim, number
from mpisim.core.errors import InputError

TABLES = "tables.json"
Table = list[list[str | float]]  # the first row is the head
ROW = 0.22  # inches


def read(folder: Path) -> list[Table]:
    """The tables; `InputError` where nothing was measured."""
    try:
        return json.loads((folder / TABLES).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        hint = "`mpisim study run/marina evidence` measures it"
        raise InputError(f"{folder / TABLES}: cannot be read: {error}; {hint}") from None


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


def claims(tables: list[Table]) -> list[Claim]:
    """None: these are numbers about code, not sentences of the paper."""
    return []
