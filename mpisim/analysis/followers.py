"""Entries of a legend, and bands, that have the colour that their curve has when it is drawn.

A reader of a figure may recolour its lines later, in Python. Matplotlib copies them before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.legend_handler import HandlerLine2D
from matplotlib.lines import Line2D

ALPHA = 0.18  # of a band


class Entry(Line2D):
    """A line of a legend."""

    curve: Line2D

    def draw(self, renderer: Any) -> None:
        self.set(color=self.curve.get_color(), markerfacecolor=self.curve.get_markerfacecolor())
        super().draw(renderer)


class Handler(HandlerLine2D):
    """Makes an `Entry` for a curve."""

    def create_artists(self, legend: Any, curve: Any, *place: Any) -> list[Line2D]:
        line: Any = super().create_artists(legend, curve, *place)[0]
        entry = Entry(*line.get_data(), markevery=line.get_markevery())
        entry.update_from(line)
        entry.curve = curve
        return [entry]


class Band(PolyCollection):
    """Between ``low`` and ``high``, shape (points,), around a curve."""

    def __init__(self, curve: Line2D, x: np.ndarray, low: np.ndarray, high: np.ndarray):
        outline = np.column_stack([np.r_[x, x[::-1]], np.r_[low, high[::-1]]])
        super().__init__([outline], color=curve.get_color(), alpha=ALPHA, linewidth=0)
        self._curve = curve

    def draw(self, renderer: Any) -> None:
        self.set_color(self._curve.get_color())
        super().draw(renderer)
