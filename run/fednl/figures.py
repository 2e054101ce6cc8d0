"""FedNL: Hessians as messages, against first-order methods."""

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

FEDNL = Line("FedNL, TopK", BLUE, {"method.name": "fednl"})
GD = Line("GD", ORANGE, {"method.name": "gd"})
DIANA = Line("DIANA, RandK", GREEN, {"method.name": "diana"})
LINES = Lines(
    (FEDNL, DIANA, GD),
    BITS,
    lambda log: f"{value_of(log, 'problem.data')}, l2 = {value_of(log, 'problem.l2'):g}",
)

A = Line("FedNL, option A", PURPLE, {"method.name": "fednl", "method.option": "A"})
B = Line("FedNL, option B", BLUE, {"method.name": "fednl", "method.option": "B"})
SEARCH = Line("FedNL-LS", GREEN, {"method.name": "fednl-ls"}, (0, (4, 1.5)))
PP = Line("FedNL-PP, 5 of 20 clients", RED, {"method.name": "fednl-pp"}, (0, (4, 1.5)))
VARIANTS = Lines((A, SEARCH, B, PP), BITS, LINES.panel)


def newton(logs: list[Log]) -> Iterator[Claim]:
    """FedNL against both."""
    yield LINES.fewer(FEDNL, GD, QUESTION, logs)
    yield LINES.fewer(FEDNL, DIANA, QUESTION, logs)
    yield LINES.fewer(FEDNL, GD, QUESTION, logs, "much fewer bits than", "much")


def variants(logs: list[Log]) -> Iterator[Claim]:
    """A line search, and some of the clients, against FedNL, with Newton's step."""
    yield VARIANTS.fewer(SEARCH, A, QUESTION, logs)
    yield VARIANTS.fewer(SEARCH, B, QUESTION, logs)
    yield VARIANTS.fewer(PP, B, QUESTION, logs)


PAPER = ["problem.data=w8a", "sweep.steps=[1, 2, 4]", "run.stop.bits_up=2e6"]
FIGURES = [
    Figure(
        "newton",
        "FedNL against GD and DIANA",
        Grid("newton", {"quick": [], "paper": PAPER}),
        LINES.draw,
        newton,
    ),
    Figure(
        "variants",
        "FedNL with a line search, and with some of the clients",
        Grid("variants"),
        VARIANTS.draw,
        variants,
    ),
]
