"""Compression down: EF21-P and MARINA-P against gradient descent, by the bits that workers get."""

from __future__ import annotations

from collections.abc import Iterator

from mpisim.analysis import style
from mpisim.analysis.claims import Claim
from mpisim.analysis.curves import Axis
from mpisim.analysis.study import Figure, Grid, Line, Lines, value_of
from mpisim.runs.log.reader import Log

BITS = Axis("bits_down", log=False)
BLUE, ORANGE, GREEN, RED = style.COLOURS[:4]
QUESTION = ("", "no quote: measured here")

GD = Line("GD", ORANGE, {"method.name": "gd"})
EF21_P = Line("EF21-P, TopK", GREEN, {"method.name": "ef21-p"})
MARINA_P = {"method.name": "marina-p"}
RANDK = Line("MARINA-P, RandK", RED, MARINA_P | {"method.down.name": "randk"})
PERMK = Line("MARINA-P, PermK", BLUE, MARINA_P | {"method.down.name": "permk"})
LINES = Lines(
    (PERMK, RANDK, EF21_P, GD), BITS, lambda log: f"n = {value_of(log, 'problem.workers')}"
)


def quadratic(logs: list[Log]) -> Iterator[Claim]:
    """PermK against all, and the others against gradient descent."""
    for less, more in ((PERMK, RANDK), (PERMK, EF21_P), (PERMK, GD), (EF21_P, GD), (RANDK, GD)):
        yield LINES.fewer(less, more, QUESTION, logs, "fewer bits down than")


FIGURES = [
    Figure("quadratic", "bits down on the quadratics", Grid("quadratic"), LINES.draw, quadratic)
]
