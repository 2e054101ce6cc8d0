"""Local training: Scaffnew and TAMUNA against gradient descent, SCAFFOLD and DIANA."""

from __future__ import annotations

from collections.abc import Iterator

from mpisim.analysis import style
from mpisim.analysis.claims import Claim
from mpisim.analysis.curves import Axis
from mpisim.analysis.study import Figure, Grid, Line, Lines, value_of
from mpisim.runs.log.reader import Log

BITS = Axis("bits_up", log=False)
BLUE, ORANGE, GREEN, RED, PURPLE = style.COLOURS[:5]
QUESTION = ("", "no quote: measured here")

GD = Line("GD", ORANGE, {"method.name": "gd"})
DIANA = Line("DIANA, RandK", PURPLE, {"method.name": "diana"})
SCAFFOLD = Line("SCAFFOLD", RED, {"method.name": "scaffold"})
SCAFFNEW = Line("Scaffnew", GREEN, {"method.name": "scaffnew"})
TAMUNA = Line("TAMUNA", BLUE, {"method.name": "tamuna"})
KAPPA = Lines(
    (TAMUNA, SCAFFNEW, SCAFFOLD, DIANA, GD),
    BITS,
    lambda log: f"{log.config['problem']['data']}, l2 = {log.config['problem']['l2']:g}",
)


def clients(method: str, label: str, c: int | None, colour: str, dash: object = "-") -> Line:
    """A method with c of 20 clients; all if c is None."""
    keys = {"method.name": method, "method.participants": c}
    return Line(f"{label}, {c or 20} of 20 clients", colour, keys, dash)


DOTS = (0, (1, 1.5))
ALL = clients("tamuna", "TAMUNA", None, BLUE)
FIVE = clients("tamuna", "TAMUNA", 5, BLUE, DOTS)
S_FIVE = clients("scaffold", "SCAFFOLD", 5, RED, DOTS)
PARTS = Lines((ALL, FIVE, S_FIVE, GD), BITS, lambda log: str(value_of(log, "problem.data")))


def kappa(logs: list[Log]) -> Iterator[Claim]:
    """Each against gradient descent, and against each other."""
    for less, more in (
        (SCAFFNEW, GD),
        (SCAFFNEW, DIANA),
        (SCAFFNEW, SCAFFOLD),
        (TAMUNA, GD),
        (TAMUNA, DIANA),
        (TAMUNA, SCAFFNEW),
    ):
        yield KAPPA.fewer(less, more, QUESTION, logs)


def participation(logs: list[Log]) -> Iterator[Claim]:
    """With some clients it needs about as many bits as with all, and fewer than SCAFFOLD."""
    for less, more in ((ALL, GD), (FIVE, GD), (FIVE, S_FIVE)):
        yield PARTS.fewer(less, more, QUESTION, logs)
    yield PARTS.fewer(FIVE, ALL, QUESTION, logs, "about as many bits as", "around")


FIGURES = [
    Figure(
        "kappa",
        "bits by condition number",
        Grid("kappa", {"quick": [], "paper": ["problem.data=a9a"]}),
        KAPPA.draw,
        kappa,
    ),
    Figure(
        "participation",
        "bits with some of the clients",
        Grid(
            "participation", {"quick": [], "paper": ["problem.data=w8a", "sweep.steps=[0.5,1,2,4]"]}
        ),
        PARTS.draw,
        participation,
    ),
]
