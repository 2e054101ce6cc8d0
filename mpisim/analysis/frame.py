"""What the user of a figure chooses: its size, and the limits and labels of its axes."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from mpisim.analysis.curves import Axis
from mpisim.core.errors import InputError
from mpisim.core.schema import require

Limits = tuple[float | None, float | None]
SMALLEST, LARGEST = 1.0, 100.0  # inches


@dataclasses.dataclass(frozen=True)
class Frame:
    """Choices of the user; None leaves a choice to the figure.

    xlim, ylim : the least and the largest value on an axis, each a number or None
    xlabel, ylabel : texts, with formulas between dollar signs
    size : width and height in inches
    """

    xlim: Limits | None = None
    ylim: Limits | None = None
    xlabel: str | None = None
    ylabel: str | None = None
    size: tuple[float, float] | None = None

    def check(self, x: Axis, y: Axis, title: str | None) -> None:
        """Raise `InputError` for a choice that cannot be drawn on these axes."""
        _check_limits("x", self.xlim, x.log)
        _check_limits("y", self.ylim, y.log)
        check_size(self.size)
        for name, text in (("xlabel", self.xlabel), ("ylabel", self.ylabel), ("title", title)):
            check_text(f"--{name}", text)

    def apply(self, panel: Any) -> None:
        """Set the limits and labels that were chosen."""
        for name in ("xlim", "ylim", "xlabel", "ylabel"):
            value = getattr(self, name)
            if value is not None:
                panel.set(**{name: value})


def check_size(size: tuple[float, float] | None) -> None:
    """Raise `InputError` unless a figure may have this size in inches."""
    if size is not None:
        allowed = f"a width and a height between {SMALLEST:g} and {LARGEST:g} inches"
        require(all(SMALLEST <= side <= LARGEST for side in size), "--size", _listed(size), allowed)


def check_text(where: str, text: str | None) -> None:
    """Raise `InputError` unless matplotlib can set the formulas of a text."""
    from matplotlib.cbook import is_math_text
    from matplotlib.mathtext import MathTextParser

    try:
        for line in filter(is_math_text, (text or "").splitlines()):
            MathTextParser("path").parse(line)
    except ValueError:
        raise InputError(
            f"{where}: {text!r} is not allowed; formulas between dollar signs must be matplotlib's"
            " mathtext"
        ) from None


def _check_limits(axis: str, limits: Limits | None, log: bool) -> None:
    if limits is None:
        return
    given = [value for value in limits if value is not None]
    increasing = len(given) < 2 or given[0] < given[1]
    good = increasing and all(math.isfinite(value) and (value > 0 or not log) for value in given)
    positive = f", both positive: the axis is logarithmic, unless --linear-{axis}" if log else ""
    allowed = f"two numbers, the smaller one first, or auto for either{positive}"
    require(good, f"--{axis}lim", _listed(limits), allowed)


def _listed(values: tuple[float | None, ...]) -> str:
    return " ".join("auto" if value is None else f"{value:g}" for value in values)
