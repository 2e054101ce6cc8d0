"""Draws where the seconds of a round go: a stacked bar for each group of runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mpisim.analysis import style
from mpisim.analysis.plot import check_size, check_text
from mpisim.analysis.remarks import about_seconds
from mpisim.analysis.run_groups import common_title, group_runs
from mpisim.comm.clock import PHASES
from mpisim.core.errors import InputError
from mpisim.runs.log.reader import Log

COLOURS = dict(zip(PHASES, (*style.COLOURS, "#999999"), strict=True))
BAR = 0.45  # inches a bar
AROUND, LINE = 1.9, 0.2  # inches for title, legend and axis; for another line of the title
UNITS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6}
LEGEND = {"fontsize": 9, "handlelength": 1.0, "handletextpad": 0.5, "columnspacing": 1.4}


def draw(
    logs: Sequence[Log], title: str | None = None, size: tuple[float, float] | None = None
) -> Any:
    """A matplotlib figure of the mean seconds of a round, by phase, of the runs.

    What is spent before round 0 is left out. Runs that differ only in the seed make one bar, their
    mean. ``size`` is (width, height) in inches. Raises `InputError` for a log that has no round.
    """
    style.check_installed()
    from matplotlib.figure import Figure  # draws with Agg or its PDF writer: no window

    check_size(size)
    check_text("--title", title)
    groups = group_runs(logs, by_ranks=True)
    seconds = [np.mean([per_round(log) for log in group.logs], axis=0) for group in groups]
    title = style.with_formulas(common_title(groups)) if title is None else title
    height = AROUND + BAR * len(groups) + LINE * title.count("\n")
    with style.styled():
        figure = Figure(figsize=size or (style.WIDE, height), layout="constrained")
        panel = figure.subplots()
        unit = _bars(panel, np.transpose(seconds))
        labels = [style.with_formulas(group.label) for group in groups]
        panel.set_yticks(range(len(groups)), labels)
        panel.invert_yaxis()  # the first log on top
        panel.grid(visible=False, axis="y")
        panel.set_axisbelow(True)
        panel.margins(x=0.12)
        panel.set(xlabel=f"{unit} a round, on the slowest path", title=title)
        figure.legend(loc="outside upper center", ncols=len(PHASES), **LEGEND)
        style.remark(figure, about_seconds(logs))
    return figure


def per_round(log: Log) -> np.ndarray:
    """Mean seconds of a round in each of `PHASES`, from the first row of a log to its last.

    The mean, not the median: methods whose rounds are not alike spend both kinds of them, and means
    of phases add up to the mean of the round.
    """
    rounds = log.column("round")
    if log.rows < 2 or rounds[-1] <= rounds[0]:
        raise InputError(f"{log.path}: no round to draw; the log has {log.rows} rows")
    spent = np.array([np.ptp(log.column(f"time_{phase}")[[0, -1]]) for phase in PHASES])
    return spent / (rounds[-1] - rounds[0])


def unit_of(seconds: float) -> str:
    """The largest of `UNITS` that does not exceed so many seconds."""
    return next((unit for unit in UNITS if UNITS[unit] <= seconds), [*UNITS][-1])


def _bars(panel: Any, seconds: np.ndarray) -> str:
    """A bar for each column of ``seconds`` (phases, bars), with its total; returns the unit."""
    totals = seconds.sum(axis=0)
    unit = unit_of(totals.max())
    left, places = np.zeros(len(totals)), range(len(totals))
    for phase, widths in zip(PHASES, seconds / UNITS[unit], strict=True):
        bars = panel.barh(places, widths, 0.7, left=left, color=COLOURS[phase], label=phase)
        left += widths
    panel.bar_label(bars, [f"{total:.3g} {unit}" for total in left], padding=4, fontsize=9)
    return unit
