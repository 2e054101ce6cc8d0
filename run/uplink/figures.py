"""Compression up: shifts, skipped messages and momenta, by the bits that workers send."""

from __future__ import annotations

from mpisim.analysis import style
from mpisim.analysis.curves import UNIFORM, Axis
from mpisim.analysis.study import Figure, Grid, Line, Lines, data_and_l2, titled

BITS = Axis("bits_up", log=False)
BLUE, ORANGE, GREEN, RED, PURPLE = style.COLOURS[:5]
COMPRESSORS = {"randk": "RandK, K = d / 10", "natural": "natural"}

DIANA = Line("DIANA", ORANGE, {"method.name": "diana"})
RAND = Line("Rand-DIANA", RED, {"method.name": "rand-diana"})
EF_BV = Line("EF-BV", PURPLE, {"method.name": "ef-bv"}, (0, (4, 1.5)))
ADIANA = Line("ADIANA", BLUE, {"method.name": "adiana"})
CANITA = Line("CANITA", GREEN, {"method.name": "canita"})
COMPARED = (ADIANA, CANITA, DIANA, RAND, EF_BV)
SHIFTS = Lines(COMPARED, BITS, *titled("compressor.name", COMPRESSORS))

GD = Line("GD", ORANGE, {"method.name": "gd"})
LAG = Line("LAG", RED, {"method.name": "lag"})
EF21 = Line("EF21, TopK", GREEN, {"method.name": "ef21"})
CLAG = Line("CLAG, TopK", BLUE, {"method.name": "clag"})
SKIPPING = Lines((CLAG, EF21, LAG, GD), BITS, data_and_l2)

SGDM = Line("EF21-SGDM, TopK", BLUE, {"method.name": "ef21-sgdm"})
BATCHES = {4: "minibatches of 4", 16: "minibatches of 16"}
MOMENTUM = Lines((SGDM, EF21), BITS, *titled("method.batch", BATCHES), UNIFORM)

shifts = SHIFTS.against((ADIANA, DIANA), (CANITA, DIANA), (DIANA, RAND), (EF_BV, DIANA, "around"))
skipping = SKIPPING.against((LAG, GD), (CLAG, EF21), (CLAG, LAG))
momentum = MOMENTUM.against((SGDM, EF21))
FIGURES = [
    Figure("shifts", "shifts and acceleration", Grid("shifts"), SHIFTS.draw, shifts),
    Figure("skipping", "skipped messages", Grid("skipping"), SKIPPING.draw, skipping),
    Figure("momentum", "momenta with minibatches", Grid("momentum"), MOMENTUM.draw, momentum),
]
