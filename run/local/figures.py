"""Local training: averages, control variates and compression against gradient descent and DIANA."""

from __future__ import annotations

from mpisim.analysis import style
from mpisim.analysis.curves import Axis
from mpisim.analysis.study import Figure, Grid, Line, Lines, data_and_l2, titled, value_of

BITS = Axis("bits_up", log=False)
BLUE, ORANGE, GREEN, RED, PURPLE = style.COLOURS[:5]

GD = Line("GD", ORANGE, {"method.name": "gd"})
DIANA = Line("DIANA, RandK", PURPLE, {"method.name": "diana"})
SCAFFOLD = Line("SCAFFOLD", RED, {"method.name": "scaffold"})
SCAFFNEW = Line("Scaffnew", GREEN, {"method.name": "scaffnew"})
TAMUNA = Line("TAMUNA", BLUE, {"method.name": "tamuna"})
KAPPA = Lines((TAMUNA, SCAFFNEW, SCAFFOLD, DIANA, GD), BITS, data_and_l2)

FEDAVG = Line("FedAvg", BLUE, {"method.name": "fedavg"})
PROX = {"method.name": "fedprox"}
PROX_LESS = Line("FedProx, μ = 0.1", PURPLE, PROX | {"method.mu": 0.1}, (0, (4, 1.5)))
PROX_MORE = Line("FedProx, μ = 1", RED, PROX | {"method.mu": 1.0}, (0, (4, 1.5)))
SPLITS = {"shuffled": "shuffled rows", "dirichlet": "unlike shares of the labels"}
AVERAGED = (FEDAVG, PROX_LESS, PROX_MORE, SCAFFNEW, GD)
AVERAGES = Lines(AVERAGED, BITS, *titled("problem.split", SPLITS))
COMPRESSED = Line("CompressedScaffnew", ORANGE, {"method.name": "compressed-scaffnew"})
LOCODL = Line("LoCoDL, RandK", RED, {"method.name": "locodl"})
BOTH = Lines((LOCODL, COMPRESSED, TAMUNA, SCAFFNEW), BITS, data_and_l2)


def clients(method: str, label: str, c: int | None, colour: str, dash: object = "-") -> Line:
    """A method with c of 20 clients; all if c is None."""
    keys = {"method.name": method, "method.participants": c}
    return Line(f"{label}, {c or 20} of 20 clients", colour, keys, dash)


DOTS = (0, (1, 1.5))
ALL = clients("tamuna", "TAMUNA", None, BLUE)
FIVE = clients("tamuna", "TAMUNA", 5, BLUE, DOTS)
S_FIVE = clients("scaffold", "SCAFFOLD", 5, RED, DOTS)
PARTS = Lines((ALL, FIVE, S_FIVE, GD), BITS, lambda log: str(value_of(log, "problem.data")))
kappa = KAPPA.against(
    *((SCAFFNEW, one) for one in (GD, DIANA, SCAFFOLD)),
    *((TAMUNA, one) for one in (GD, DIANA, SCAFFNEW)),
)
participation = PARTS.against((ALL, GD), (FIVE, GD), (FIVE, S_FIVE), (FIVE, ALL, "around"))
# Averages against gradient descent, the proximal term, and control variates.
averaging = AVERAGES.against(
    (FEDAVG, GD), (PROX_LESS, FEDAVG), (PROX_MORE, FEDAVG), (SCAFFNEW, FEDAVG)
)
compressed = BOTH.against(
    (COMPRESSED, SCAFFNEW), (LOCODL, SCAFFNEW), (LOCODL, COMPRESSED), (COMPRESSED, TAMUNA, "around")
)

A9A = ["problem.data=a9a", "sweep.steps=[0.125,0.25,0.5,1,2,4]"]
W8A = ["problem.data=w8a", "sweep.steps=[1,2,4,8,16,32]"]
BY_KAPPA = Grid("kappa", {"quick": [], "paper": A9A})
SOME = Grid("participation", {"quick": [], "paper": W8A})
FIGURES = [
    Figure("kappa", "bits by condition number", BY_KAPPA, KAPPA.draw, kappa),
    Figure("participation", "bits with some of the clients", SOME, PARTS.draw, participation),
    Figure("averaging", "averages of local steps", Grid("averaging"), AVERAGES.draw, averaging),
    Figure("compressed", "local steps and compression", Grid("compressed"), BOTH.draw, compressed),
]
