"""Grids of panels for the figures of studies, in the style of all other figures."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from mpisim.analysis import style
from mpisim.analysis.curves import ABOVE, WHY, Axis, framing_share, over_seeds, oversubscribed
from mpisim.runs.log.reader import Log

Entry = tuple[str, dict[str, Any]]  # of a legend: a text, and the look of its line
R = TypeVar("R")
C = TypeVar("C")

PANEL = (2.35, 2.0)  # inches


def grid(rows: int, columns: int, panel: tuple[float, float] = PANEL) -> tuple[Any, Any]:
    """A figure and its panels, shape (rows, columns), each of the size ``panel`` in inches."""
    size = (panel[0] * columns + 0.8, panel[1] * rows + 0.7)
    return style.new_figure(size, rows, columns)


def matrix(
    rows: Sequence[R],
    columns: Sequence[C],
    fill: Callable[[Any, R, C], None],
    *,
    labels: Iterable[str],
    titles: Iterable[str],
    entries: Sequence[Entry],
    title: str = "",
) -> Any:
    """A figure with a panel for each row and column, which ``fill(panel, row, column)`` draws.

    ``labels`` stand at the left of the rows, ``titles`` above the columns, and ``entries`` under
    ``title`` in one legend above all.
    """
    figure, panels = grid(len(rows), len(columns))
    for line, row, label in zip(panels, rows, labels, strict=True):
        for panel, column in zip(line, columns, strict=True):
            fill(panel, row, column)
        line[0].set_ylabel(label)
    for panel, text in zip(panels[0], titles, strict=True):
        panel.set_title(text)
    legend(figure, entries, title)
    return figure


def curve(
    panel: Any,
    logs: Sequence[Log],
    x: Axis,
    y: Axis,
    colour: str,
    dash: Any,
    label: str = "",
    band: bool = True,
) -> None:
    """The runs of one setting: mean over seeds, in log space on a logarithmic axis, and a band.

    ``label``: in the panel's own legend. ``band``: whether to draw that. Below the axis, where it
    has a label, stands whether runs had more ranks than cores, of seconds, and whether large
    framing is left out, of bits.
    """
    drawn = over_seeds(logs, x, y)
    panel.plot(drawn.x, drawn.y, color=colour, linestyle=dash, label=label)
    if band and drawn.low is not None:
        panel.fill_between(drawn.x, drawn.low, drawn.high, color=colour, alpha=0.2, linewidth=0)
    remark = WHY if (x.timed or y.timed) and oversubscribed(logs) else ""
    if not remark and any(framing_share(log, x) > ABOVE for log in logs):
        remark = f"without framing (over {ABOVE:.0%})"
    if remark:
        panel.set_xlabel(textwrap.fill(remark, 28))  # `dress` puts the axis above it


def dress(panel: Any, x: Axis, y: Axis, xlabel: str, ylabel: str = "") -> None:
    """Scales, short numbers on the ticks, and labels; after the curves are drawn."""
    from matplotlib import ticker

    remark = panel.get_xlabel()
    below = f"{xlabel}\n{remark}" if xlabel and remark else xlabel
    style.scale(panel, x.log, y.log, xlabel=below)
    if ylabel:
        panel.set_ylabel(ylabel)
    if not x.log:
        panel.xaxis.set_major_formatter(ticker.EngFormatter(sep=""))
        panel.xaxis.set_major_locator(ticker.MaxNLocator(4))


def entries_of(looks: Mapping[str, tuple[str, Any]]) -> list[Entry]:
    """The entries of a legend from {text: (colour, dash)}."""
    return [(text, {"color": c, "linestyle": dash}) for text, (c, dash) in looks.items()]


def colours_of(colours: Iterable[tuple[str, str]], linewidth: float = 4) -> list[Entry]:
    """The entries of a legend that explains colours alone, from pairs (text, colour)."""
    return [(text, {"color": colour, "linewidth": linewidth}) for text, colour in colours]


def dashes_of(dashes: Mapping[str, Any]) -> list[Entry]:
    """The entries of a legend that explains dashes alone, from {text: dash}."""
    return entries_of({text: ("black", dash) for text, dash in dashes.items()})


def legend(
    figure: Any, entries: Sequence[Entry], title: str = "", columns: int | None = None
) -> None:
    """One legend above all panels, ``columns`` entries side by side; as many as fit if None."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], label=text, **look) for text, look in entries]
    style.spread_legend(figure, handles, columns, handlelength=2.6, title=title or None)


def caption(figure: Any, text: str, columns: int) -> None:
    """A text below ``columns`` panels side by side."""
    style.remark(figure, textwrap.fill(text, 40 * columns))


def table(panel: Any, cells: Sequence[Sequence[str]], height: float, **look: Any) -> None:
    """A table in place of axes; ``height`` scales that of its rows."""
    panel.axis("off")
    drawn = panel.table(cells, loc="center", **look)
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(9)
    drawn.scale(1, height)
