"""FedNL: Hessians as messages, against first-order methods."""

from __future__ import annotations

from mpisim.analysis import style
from mpisim.analysis.curves import Axis
from mpisim.analysis.study import Figure, Grid, Line, Lines, data_and_l2

BITS = Axis("bits_up", log=False)
BLUE, ORANGE, GREEN, RED, PURPLE = style.COLOURS[:5]

FEDNL = Line("FedNL, TopK", BLUE, {"method.name": "fednl"})
GD = Line("GD", ORANGE, {"method.name": "gd"})
DIANA = Line("DIANA, RandK", GREEN, {"method.name": "diana"})
LINES = Lines((FEDNL, DIANA, GD), BITS, data_and_l2)

A = Line("FedNL, option A", PURPLE, {"method.name": "fednl", "method.option": "A"})
B = Line("FedNL, option B", BLUE, {"method.name": "fednl", "method.option": "B"})
SEARCH = Line("FedNL-LS", GREEN, {"method.name": "fednl-ls"}, (0, (4, 1.5)))
PP = Line("FedNL-PP, 5 of 20 clients", RED, {"method.name": "fednl-pp"}, (0, (4, 1.5)))
VARIANTS = Lines((A, SEARCH, B, PP), BITS, data_and_l2)

newton = LINES.against((FEDNL, GD), (FEDNL, DIANA), (FEDNL, GD, "much"))
variants = VARIANTS.against((SEARCH, A), (SEARCH, B), (PP, B))
PAPER = ["problem.data=w8a", "sweep.steps=[0.5, 1, 2, 4, 8, 16]", "run.stop.bits_up=2e6"]
NEWTON = Grid("newton", {"quick": [], "paper": PAPER})
SEARCHES = "FedNL with a line search, and with some of the clients"
FIGURES = [
    Figure("newton", "FedNL against GD and DIANA", NEWTON, LINES.draw, newton),
    Figure("variants", SEARCHES, Grid("variants"), VARIANTS.draw, variants),
]
