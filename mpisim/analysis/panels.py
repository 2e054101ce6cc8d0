"""Grids of panels, in the style of the other figures, for the figures of the papers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mpisim.analysis import style
from mpisim.analysis.curves import Axis, over_seeds
from mpisim.runs.log.reader import Log

PANEL = (2.35, 2.0)  # inches
RC = style.RC | {
    "font.size": 9,
    "axes.titlesize": 11,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 10,
    "lines.linewidth": 1.5,
}


@contextmanager
def styled() -> Iterator[None]:
    """Drawing in here looks the same whatever the user's matplotlibrc says."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(RC)
        yield


def grid(rows: int, columns: int, panel: tuple[float, float] = PANEL) -> tuple[Any, Any]:
    """A figure and its panels, shape (rows, columns), each of the size ``panel`` in inches."""
    from matplotlib.figure import Figure  # draws with Agg or its PDF writer: no window

    size = (panel[0] * columns + 0.8, panel[1] * rows + 0.7)
    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def curve(panel: Any, logs: Sequence[Log], x: Axis, y: Axis, colour: str, dash: Any) -> None:
    """The runs of one setting: mean over seeds, in log space on a logarithmic axis, and a band."""
    drawn = over_seeds(logs, x, y)
    panel.plot(drawn.x, drawn.y, color=colour, linestyle=dash)
    if drawn.low is not None:
        panel.fill_between(drawn.x, drawn.low, drawn.high, color=colour, alpha=0.2, linewidth=0)


def dress(panel: Any, x: Axis, y: Axis, label: str) -> None:
    """Scales, short numbers on the ticks, and the label of x; after the curves are drawn."""
    from matplotlib import ticker

    panel.margins(x=0.02)
    panel.set_xscale("log" if x.log else "linear")
    panel.set_yscale("log" if y.log else "linear")
    panel.set_xlabel(label)
    if not x.log:
        panel.xaxis.set_major_formatter(ticker.EngFormatter(sep=""))
        panel.xaxis.set_major_locator(ticker.MaxNLocator(4))
    for axis, shown, limits in (
        (panel.xaxis, x, panel.get_xlim()),
        (panel.yaxis, y, panel.get_ylim()),
    ):
        if shown.log:
            style.log_ticks(axis, *limits)


def legend(
    figure: Any,
    entries: Sequence[tuple[str, dict[str, Any]]],
    title: str = "",
    columns: int | None = None,
) -> None:
    """One legend above all panels; each entry a text and the look of its line.

    ``columns``: entries beside each other, as many as fit unless given.
    """
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], label=text, **look) for text, look in entries]
    for count in range(columns or len(handles), 0, -1):
        legend = figure.legend(
            handles=handles,
            loc="outside upper center",
            ncols=count,
            handlelength=2.6,
            title=title or None,
        )
        extent = legend.get_window_extent()
        if columns or count == 1 or extent.width <= figure.bbox.width:
            return
        legend.remove()
