"""Legends that stay on the page."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from mpisim.analysis import style
from mpisim.core.errors import InputError

INSIDE = 6  # more curves than this hide each other's legend inside the panel
HANDLE = 3.0  # length of the lines in a legend, in letters
INNER = (0.9, 0.6)  # shares of the panel that a legend inside may take
BESIDE = 0.5  # share of the page's width that a legend beside the panel may take
ABOVE = 0.6  # share of the page's height that a legend above the panel may take, by a given size
SMALLEST = 5  # points; smaller texts cannot be read


def place(panel: Any, may_grow: bool) -> None:
    """A legend of the panel's curves: inside the panel, else beside it, else above it.

    The page grows to make room if it ``may_grow``. Otherwise the texts shrink, and `InputError`
    says so where they would become too small to read.
    """
    count = len(panel.get_legend_handles_labels()[0])
    if count < 2 or (count <= INSIDE and _inside(panel)):
        return
    if not _beside(panel, may_grow):
        _above(panel, may_grow)


def spread(figure: Any, handles: Sequence[Any], columns: int | None = None, **look: Any) -> Any:
    """A legend above all panels, ``columns`` entries side by side; as many as fit if None."""
    look |= {"handles": handles, "loc": "outside upper center"}
    for count in range(columns or _most(figure, look), 0, -1):
        legend = figure.legend(ncols=count, **look)
        if columns or count == 1 or legend.get_window_extent().width <= figure.bbox.width:
            break
        legend.remove()
    return legend


def _most(figure: Any, look: dict[str, Any]) -> int:
    """More columns than this do not fit, even if all texts were as short as the shortest."""
    legend = figure.legend(ncols=1, **look | {"title": None})
    widths = [text.get_window_extent().width for text in legend.get_texts()]
    beside = legend.get_window_extent().width - max(widths)  # mostly the line, in each column
    legend.remove()
    fitting = int(figure.bbox.width / (min(widths) + beside / 2))
    return min(max(fitting, 1), len(widths))


def _inside(panel: Any) -> bool:
    """Whether the legend fits into the panel; if so, it is there."""
    legend = panel.legend(handlelength=HANDLE)
    panel.figure.draw_without_rendering()
    own, room = legend.get_window_extent(), panel.get_window_extent()
    return _keep(
        legend, own.width <= INNER[0] * room.width and own.height <= INNER[1] * room.height
    )


def _beside(panel: Any, may_grow: bool) -> bool:
    """Whether the legend fits beside the panel; if so, it is there."""
    figure, narrow = panel.figure, panel.figure.get_figwidth()
    if may_grow:
        figure.set_figwidth(style.WIDE)
    legend = panel.legend(handlelength=HANDLE, loc="upper left", bbox_to_anchor=(1.02, 1.0))
    own, page = legend.get_window_extent(), figure.bbox
    top = panel.get_tightbbox().height - panel.get_window_extent().height  # title and labels
    fits = own.width <= BESIDE * page.width and own.height <= page.height - top
    if not fits:
        figure.set_figwidth(narrow)
    return _keep(legend, fits)


def _above(panel: Any, may_grow: bool) -> None:
    figure = panel.figure
    if may_grow:
        figure.set_figwidth(style.WIDE)
    for size in range(style.RC["legend.fontsize"], SMALLEST - 1, -1):
        legend = _wrapped(panel, size)
        extent = legend.get_window_extent()
        if may_grow:
            figure.set_figheight(figure.get_figheight() + extent.height / figure.dpi)
            return
        if extent.width <= figure.bbox.width and extent.height <= ABOVE * figure.bbox.height:
            return
        legend.remove()
    width, height = figure.get_size_inches()
    count = len(panel.get_legend_handles_labels()[0])
    raise InputError(
        f"--size {width:g} {height:g}: has no room for a legend of {count} curves; allowed: a"
        " larger size, or fewer logs"
    )


def _wrapped(panel: Any, size: int) -> Any:
    """The legend above the panel, its texts broken into lines that the page can hold."""
    handles, texts = panel.get_legend_handles_labels()
    look: dict[str, Any] = {"handlelength": HANDLE, "fontsize": size}
    legend = spread(panel.figure, handles, **look)
    excess = legend.get_window_extent().width / panel.figure.bbox.width
    if excess <= 1:
        return legend
    legend.remove()
    letters = max(int(0.8 * max(map(len, texts)) / excess), 1)
    for handle, text in zip(handles, texts, strict=True):
        handle.set_label(textwrap.fill(text, letters))
    legend = spread(panel.figure, handles, **look)
    for handle, text in zip(handles, texts, strict=True):
        handle.set_label(text)
    return legend


def _keep(legend: Any, fits: bool) -> bool:
    if not fits:
        legend.remove()
    return fits
