"""The runs of a folder in a table: what varies, how they ended, last values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mpisim.analysis.results.provenance import settings, several, told
from mpisim.analysis.text import columns, number
from mpisim.core.errors import InputError
from mpisim.core.schema import choose
from mpisim.runs.log.reader import Log, damaged

Cell = str | int | float | None
LEADING = re.compile(r"[0-9.]+(e[+-]?[0-9]+)?(?= )")  # of "4 × theory"
LAST = ("loss", "grad_norm_sq")  # columns whose last values are listed
HEAD_AFTER = ("status", "round", *LAST, "bits_per_worker", "seconds")


def run_list(folder: Path, logs: Sequence[Log]) -> tuple[list[str], list[list[Cell]]]:
    """Head and rows: the log's path in the folder, settings that vary, status, last values.

    A setting varies if two runs have different values of it. Values that a run or its log does not
    have are None.
    """
    varied = list(settings(log.config for log in logs).varied)
    rows = []
    for log in logs:
        with damaged(log.path):
            rows.append([str(log.path.relative_to(folder)), *_settings(log, varied), *_end(log)])
    return ["log", *varied, *HEAD_AFTER], rows


def in_order(
    head: Sequence[str], rows: Sequence[list[Cell]], name: str | None, reverse: bool
) -> list[list[Cell]]:
    """The rows by the column ``name``: numbers, then texts, then None, which stays at the end."""
    if name is None:
        return list(reversed(rows)) if reverse else list(rows)
    place = choose({column: i for i, column in enumerate(head)}, name, "--sort")
    known = [row for row in rows if row[place] is not None]
    known.sort(key=lambda row: _rank(row[place]), reverse=reverse)
    return known + [row for row in rows if row[place] is None]


def text(head: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """The table for a terminal."""
    right = tuple(i for i in range(len(head)) if any(isinstance(r[i], int | float) for r in rows))
    lines = [tuple(number(cell) for cell in row) for row in rows]
    return columns([tuple(head), *lines], right, indent="")


def _rank(cell: Any) -> tuple[float | str, ...]:
    """Sorts numbers, also those ahead of a unit, before NaN, and that before texts."""
    if isinstance(cell, str):
        number = LEADING.match(cell)
        return (0, float(number[0]), cell) if number else (2, cell)
    return (0, cell, "") if cell == cell else (1,)


def _settings(log: Log, varied: Sequence[str]) -> list[Cell]:
    own = told(log.config)
    return [_cell(own[name]) if name in own else None for name in varied]


def _cell(value: Any) -> Cell:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return value if plain else several([value])


def _end(log: Log) -> list[Cell]:
    status = str(log.attrs.get("status", "unknown"))
    if not log.rows:
        return [status, *[None] * (len(HEAD_AFTER) - 1)]
    bits = _last(log, "bits_up")
    return [
        status,
        None if (last := _last(log, "round")) is None else int(last),
        *(_last(log, name) for name in LAST),
        None if bits is None else bits / log.n,
        _last(log, "seconds"),
    ]


def _last(log: Log, name: str) -> float | None:
    try:
        return float(log.column(name)[-1])
    except InputError:  # a log of other columns
        return None
