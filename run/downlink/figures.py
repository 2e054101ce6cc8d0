"""Compression down: EF21-P and MARINA-P against gradient descent, by the bits that workers get."""

from __future__ import annotations

from mpisim.analysis import style
from mpisim.analysis.curves import Axis
from mpisim.analysis.study import Figure, Grid, Line, Lines

BITS = Axis("bits_down", log=False)
BLUE, ORANGE, GREEN, RED = style.COLOURS[:4]

GD = Line("GD", ORANGE, {"method.name": "gd"})
EF21_P = Line("EF21-P, TopK", GREEN, {"method.name": "ef21-p"})
MARINA_P = {"method.name": "marina-p"}
RANDK = Line("MARINA-P, RandK", RED, MARINA_P | {"method.down.name": "randk"})
PERMK = Line("MARINA-P, PermK", BLUE, MARINA_P | {"method.down.name": "permk"})
METHODS = (PERMK, RANDK, EF21_P, GD)
LINES = Lines(METHODS, BITS, lambda log: f"n = {log.n}", unit="bits down")
quadratic = LINES.against((PERMK, RANDK), (PERMK, EF21_P), (PERMK, GD), (EF21_P, GD), (RANDK, GD))

GRID = Grid("quadratic")
FIGURES = [Figure("quadratic", "bits down on the quadratics", GRID, LINES.draw, quadratic)]
