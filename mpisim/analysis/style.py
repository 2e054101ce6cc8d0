"""The look of figures: colours, line styles, sizes, and legends that stay on the page."""

from __future__ import annotations

import textwrap
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from mpisim.core.errors import InputError, library

# The colours of Okabe and Ito, distinct for readers with any colour vision, without the yellow,
# which is too pale on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GREY = "#555555"  # of remarks
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.2, 1.5)), (0, (6, 2, 1.2, 2)), (0, (3, 1.2)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

WIDE = 8.6  # inches, with the legend beside the panel

# Ratios of the limits of an axis: below the first, labels are evenly spaced; below the second, they
# are at 1, 3, 10; otherwise at decades.
EVEN, THIRDS = 4.0, 100.0

# Of legends.
INSIDE = 6  # more curves than this hide each other's legend inside the panel
HANDLE = 3.0  # length of the lines in a legend, in letters
NARROWEST = 0.5  # inches of an entry beside others
INNER = (0.9, 0.6)  # shares of the panel that a legend inside may take
BESIDE = 0.5  # share of the page's width that a legend beside the panel may take
ABOVE = 0.6  # share of the page's height that a legend above the panel may take, by a given size
SMALLEST = 5  # points; smaller texts cannot be read

FIGURES, PANELS = (Path(__file__).with_name(f"{name}.mplstyle") for name in ("figures", "panels"))
SAVED: dict[Any, Any] = {"pdf.fonttype": 42, "svg.hashsalt": "mpisim"}  # settings of files


def check_installed() -> None:
    """Raise `InputError` where there is no matplotlib."""
    library("matplotlib", "plot", "a figure")


def styled(*sheets: Path) -> AbstractContextManager[None]:
    """Drawing in this context looks the same whatever the user's matplotlibrc says.

    sheets : style sheets that come after `FIGURES`
    """
    from matplotlib import style

    return style.context([FIGURES, *sheets], after_reset=True)


def new_figure(size: tuple[float, float] | None, *grid: int) -> tuple[Any, Any]:
    """A figure and its panel, or its panels in a ``grid`` of rows and columns, of that shape.

    size : in inches; that of the style sheet if None
    """
    from matplotlib.figure import Figure  # draws with Agg or its PDF writer: no window

    figure = Figure(size, layout="constrained")
    return figure, figure.subplots(*grid, squeeze=not grid)


def with_formulas(text: str) -> str:
    """A text of a log, whose dollar signs are those of a price where matplotlib cannot set it."""
    from matplotlib.cbook import is_math_text
    from matplotlib.mathtext import MathTextParser

    try:
        for line in filter(is_math_text, text.splitlines()):
            MathTextParser("path").parse(line)
    except ValueError:
        return text.replace("$", r"\$")
    return text


def curve(colour: int, dash: int, place: int, places: int) -> dict[str, Any]:
    """Keyword arguments of matplotlib's ``plot`` for curve number ``place`` of ``places``.

    Markers are offset from curve to curve, so that coinciding curves can be seen.
    """
    return {
        "color": COLOURS[colour % len(COLOURS)],
        "linestyle": DASHES[dash % len(DASHES)],
        "marker": MARKERS[place % len(MARKERS)],
        "markevery": (0.12 * place / places, 0.12),
    }


def legend(place: Any, **look: Any) -> Any:
    """A legend of axes or of a figure whose lines keep the look of the curves, once recoloured."""
    from mpisim.analysis.followers import Handler, Line2D

    return place.legend(handler_map={Line2D: Handler()}, **{"handlelength": HANDLE} | look)


def band(panel: Any, line: Any, x: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
    """A band around a curve, in the curve's colour also once it is recoloured."""
    from mpisim.analysis.followers import Band

    panel.add_collection(Band(line, x, low, high))
    panel.autoscale_view()


def remark(figure: Any, text: str) -> None:
    """A small grey text at the bottom of a figure; nothing if it is empty."""
    if text:
        figure.supxlabel(text, fontsize=8, color=GREY)


def scale(panel: Any, x_log: bool, y_log: bool, **frame: Any) -> None:
    """Logarithmic or linear axes, with ``frame``, say limits; after the curves are drawn."""
    panel.margins(x=0.02)
    panel.set(xscale="log" if x_log else "linear", yscale="log" if y_log else "linear", **frame)
    if x_log:
        log_ticks(panel.xaxis, *panel.get_xlim())
    if y_log:
        log_ticks(panel.yaxis, *panel.get_ylim())


def log_ticks(axis: Any, low: float, high: float) -> None:
    """Label decades, or more places in plain numbers where the axis spans few decades."""
    from matplotlib import ticker

    axis.set_minor_formatter(ticker.NullFormatter())
    if high >= THIRDS * low:
        return
    even = high < EVEN * low
    axis.set_major_locator(ticker.MaxNLocator(4) if even else ticker.LogLocator(subs=(1.0, 3.0)))
    plain = ticker.StrMethodFormatter("{x:g}") if high < 1e4 else ticker.EngFormatter(sep="")
    axis.set_major_formatter(plain)
    axis.set_minor_locator(ticker.NullLocator())


def place_legend(panel: Any, may_grow: bool) -> None:
    """A legend of the panel's curves: inside the panel, else beside it, else above it.

    The page grows to make room if it ``may_grow``. Otherwise the texts shrink, and `InputError`
    says so where they would become too small to read.
    """
    import matplotlib

    figure, count = panel.figure, len(panel.get_legend_handles_labels()[0])
    if count < 2:
        return
    if count <= INSIDE:
        shown = legend(panel)
        figure.draw_without_rendering()
        box, room = shown.get_window_extent(), panel.get_window_extent()
        if box.width <= INNER[0] * room.width and box.height <= INNER[1] * room.height:
            return
        shown.remove()
    if may_grow:
        figure.set_figwidth(WIDE)
    shown = legend(panel, loc="upper left", bbox_to_anchor=(1.02, 1.0))
    box, page = shown.get_window_extent(), figure.bbox
    top = panel.get_tightbbox().height - panel.get_window_extent().height  # title and labels
    if box.width <= BESIDE * page.width and box.height <= page.height - top:
        return
    shown.remove()
    for size in range(int(matplotlib.rcParams["legend.fontsize"]), SMALLEST - 1, -1):
        shown = _wrapped(panel, size)
        box = shown.get_window_extent()
        if may_grow:
            figure.set_figheight(figure.get_figheight() + box.height / figure.dpi)
        if may_grow or (box.width <= page.width and box.height <= ABOVE * page.height):
            return
        shown.remove()
    width, height = figure.get_size_inches()
    why = f"has no room for a legend of {count} curves"
    raise InputError(f"--size {width:g} {height:g}: {why}; allowed: a larger size, or fewer logs")


def spread_legend(figure: Any, handles: list[Any], columns: int | None = None, **look: Any) -> Any:
    """A legend above all panels, ``columns`` entries side by side; as many as fit if None."""
    look |= {"handles": handles, "loc": "outside upper center"}
    most = columns or min(len(handles), int(figure.get_figwidth() / NARROWEST))
    for count in range(max(most, 1), 0, -1):
        shown = legend(figure, ncols=count, **look)
        if columns or count == 1 or shown.get_window_extent().width <= figure.bbox.width:
            break
        shown.remove()
    return shown


def _wrapped(panel: Any, size: int) -> Any:
    """The legend above the panel, its texts broken into lines that the page can hold."""
    handles, texts = panel.get_legend_handles_labels()
    shown = spread_legend(panel.figure, handles, fontsize=size)
    excess = shown.get_window_extent().width / panel.figure.bbox.width
    if excess <= 1:
        return shown
    shown.remove()
    letters = max(int(0.8 * max(map(len, texts)) / excess), 1)
    for handle, text in zip(handles, texts, strict=True):
        handle.set_label(textwrap.fill(text, letters))
    shown = spread_legend(panel.figure, handles, fontsize=size)
    for handle, text in zip(handles, texts, strict=True):
        handle.set_label(text)
    return shown
