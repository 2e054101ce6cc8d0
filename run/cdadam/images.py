"""Figures 1, 3 and 5 to 10: image classification."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from mpisim.analysis import labels, panels, style
from mpisim.analysis.claims import Claim, missing
from mpisim.analysis.curves import EPOCHS, LOSS, NORM, Axis
from mpisim.runs.log.reader import Log

from . import pi
from .equal_cost import ACCURACY, BITS, TEST_ACCURACY, TEST_LOSS, TEST_NORM, better, times_fewer

LOOKS: dict[str, tuple[str, Any]] = {
    "cd-adam": (style.COLOURS[0], "-"),
    "amsgrad": (style.COLOURS[1], (0, (4, 1.5))),
    "ef21-2way": (style.COLOURS[2], (0, (1, 1.2))),
    "1bit-adam": (style.COLOURS[3], (0, (5, 1.5, 1, 1.5))),
}
RIVALS = ("ef21-2way", "1bit-adam")
ABOUT = 1.6  # "around" 32 and 5 times means up to this factor
ALL: tuple[Axis, ...] = (LOSS, NORM, ACCURACY, TEST_LOSS, TEST_NORM, TEST_ACCURACY)

Pairs = tuple[tuple[Axis, str, Axis], ...]  # (y, rival, x): CD-Adam has the better y at equal x


def pairs(x: Axis, rivals: Mapping[str, tuple[Axis, ...]]) -> Pairs:
    """The claims at equal x, from {rival: each y in which CD-Adam is better}."""
    return tuple((y, rival, x) for rival, ys in rivals.items() for y in ys)


def of_method(logs: list[Log], methods: tuple[str, ...]) -> dict[str, Log]:
    """{method: its run}, in the order of the figure."""
    found = {str(log.attrs["method"]): log for log in logs}
    return {method: found[method] for method in methods if method in found}


@dataclasses.dataclass(frozen=True)
class Curves:
    """What a figure shows of the runs of one network.

    Attributes
    ----------
    source : str
    methods : tuple of str
    axes : pairs of x and y, row by row, ``columns`` in a row
    better : see `Pairs`
    fewer : (rival, y, times) that CD-Adam saves bits against
    pi : whether the paper's range of pi is checked
    """

    source: str
    methods: tuple[str, ...]
    axes: tuple[tuple[Axis, Axis], ...]
    columns: int
    better: Pairs = ()
    fewer: tuple[tuple[str, Axis, float], ...] = ()
    pi: bool = False

    def draw(self, logs: list[Log]) -> Any:
        """The panels."""
        found = of_method(logs, self.methods)
        first = next(iter(found.values()))
        figure, drawn = panels.grid(-(-len(self.axes) // self.columns), self.columns)
        for panel, (x, y) in zip(drawn.flat, self.axes, strict=True):
            for method, log in reversed(found.items()):
                panels.curve(panel, [log], x, y, *LOOKS[method])
            panels.dress(panel, x, y, x.label(first), y.label(first))
        looks = {labels.method(method): LOOKS[method] for method in found}
        panels.legend(figure, panels.entries_of(looks))
        panels.caption(figure, labels.training(first.config, first.n), self.columns)
        return figure

    def claims(self, logs: list[Log]) -> Iterator[Claim]:
        """What the paper says of the figure. A claim without its runs does not hold."""
        found = of_method(logs, self.methods)
        if "cd-adam" not in found:
            yield missing("CD-Adam", self.source, "no complete run of CD-Adam")
            return
        own = found["cd-adam"]
        for rival, y, times in self.fewer:
            if rival in found:
                yield times_fewer(own, found[rival], BITS, y, times, ABOUT, self.source)
        if self.pi:
            yield pi.in_range(own)
        for y, rival, x in self.better:
            if rival in found:
                yield better(own, found[rival], y, x, self.source)
        for name in (labels.method(method) for method in self.methods if method not in found):
            yield missing(f"CD-Adam against {name}", self.source, f"no complete run of {name}")


FIG1 = Curves(
    "CD-Adam, Figure 1",
    ("cd-adam", "amsgrad", "1bit-adam"),
    ((BITS, LOSS), (BITS, TEST_ACCURACY)),
    2,
    fewer=(("amsgrad", LOSS, 32.0), ("1bit-adam", LOSS, 5.0)),
    pi=True,
)
FIG3 = Curves(
    "CD-Adam, Section 7.2 and Figure 3",
    ("cd-adam", *RIVALS),
    ((EPOCHS, NORM), (BITS, NORM), (BITS, LOSS), (BITS, TEST_ACCURACY)),
    4,
    pairs(EPOCHS, dict.fromkeys(RIVALS, (NORM,)))
    + pairs(BITS, dict.fromkeys(RIVALS, (NORM, LOSS, TEST_ACCURACY))),
)
NORMS = (NORM, TEST_NORM)
BETTER: dict[Axis, dict[str, tuple[Axis, ...]]] = {
    BITS: dict.fromkeys(RIVALS, ALL),
    EPOCHS: {
        "ef21-2way": (LOSS, TEST_LOSS, ACCURACY, TEST_ACCURACY, *NORMS),
        "1bit-adam": (TEST_LOSS, TEST_ACCURACY, *NORMS),
    },
}


def over(x: Axis, number: int) -> Curves:
    """Figures 5, 7 and 9 over bits, and 6, 8 and 10 over epochs: training above test."""
    axes, source = tuple((x, y) for y in ALL), f"CD-Adam, Figure {number}"
    return Curves(source, ("cd-adam", *RIVALS), axes, 3, pairs(x, BETTER[x]))
