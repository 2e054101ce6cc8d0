"""Colours, line styles and sizes of figures."""

from __future__ import annotations

from typing import Any

from mpisim.core.errors import library

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

RC: dict[Any, Any] = {
    "figure.figsize": (6.0, 4.2),
    "figure.dpi": 100,
    "savefig.dpi": 200,
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.labelsize": 12,
    "legend.fontsize": 10,
    "lines.linewidth": 1.8,
    "lines.markersize": 6.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.edgecolor": "none",
    "legend.framealpha": 0.85,
    "lines.markeredgecolor": "white",
    "lines.markeredgewidth": 0.7,
    "pdf.fonttype": 42,
    "svg.hashsalt": "mpisim",
}


def check_installed() -> None:
    """Raise `InputError` where there is no matplotlib."""
    library("matplotlib", "plot", "a figure")


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


def remark(figure: Any, text: str) -> None:
    """A small grey text at the bottom of a figure; nothing if it is empty."""
    if text:
        figure.supxlabel(text, fontsize=8, color=GREY)


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
