"""Colours, line styles and sizes of figures."""

from __future__ import annotations

from typing import Any

# Okabe and Ito's colours, which readers with any colour vision tell apart, without the yellow
# that white paper swallows.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.2, 1.5)), (0, (6, 2, 1.2, 2)), (0, (3, 1.2)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

# Inches, of a figure with its legend beside it.
WIDE = 8.6

# high / low of an axis up to which even steps, and steps of 1, 3, 10, are labelled; else decades
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
}


def curve(colour: int, dash: int, place: int, places: int) -> dict[str, Any]:
    """Keyword arguments of curve number ``place`` of ``places`` for matplotlib's ``plot``.

    Markers sit at other places on each curve, so that curves that coincide are all seen.
    """
    return {
        "color": COLOURS[colour % len(COLOURS)],
        "linestyle": DASHES[dash % len(DASHES)],
        "marker": MARKERS[place % len(MARKERS)],
        "markevery": (0.12 * place / places, 0.12),
    }


def log_ticks(axis: Any, low: float, high: float) -> None:
    """Labels at decades, or, where these are few, more of them in plain numbers."""
    from matplotlib import ticker

    axis.set_minor_formatter(ticker.NullFormatter())
    if high >= THIRDS * low:
        return
    even = high < EVEN * low
    axis.set_major_locator(ticker.MaxNLocator(4) if even else ticker.LogLocator(subs=(1.0, 3.0)))
    plain = ticker.StrMethodFormatter("{x:g}") if high < 1e4 else ticker.EngFormatter(sep="")
    axis.set_major_formatter(plain)
    axis.set_minor_locator(ticker.NullLocator())
