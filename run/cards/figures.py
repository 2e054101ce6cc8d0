"""Codes of messages: who needs the fewest bits with the papers' codes, and with entropy codes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations

from mpisim.analysis import style
from mpisim.analysis.claims import Claim
from mpisim.analysis.curves import Axis
from mpisim.analysis.study import Figure, Grid, Line, Lines, titled, value_of
from mpisim.runs.log.reader import Log

BITS = Axis("bits_up", log=False)
METHODS = (
    ("ef21", "EF21, TopK", style.COLOURS[2]),
    ("diana", "DIANA, natural", style.COLOURS[1]),
    ("marina", "MARINA, natural", style.COLOURS[0]),
    ("cd-adam", "CD-Adam, TopK", style.COLOURS[3]),
)
CODES = {"paper": "the papers' codes", "entropy": "entropy codes"}


def line(method: str, label: str, colour: str, codec: str = "") -> Line:
    """A method, with a code if one is named."""
    keys = {"method.name": method} | ({"compressor.codec": codec} if codec else {})
    return Line(f"{label}, {codec}" if codec else label, colour, keys)


LINES = [line(*method) for method in METHODS]
ORDER = Lines(LINES, BITS, *titled("compressor.codec", CODES))
PAIRS = [tuple(line(*method, codec) for codec in CODES) for method in METHODS]
SAVED = Lines(list(chain(*PAIRS)), BITS, lambda log: str(value_of(log, "problem.name")))


def claims(logs: list[Log]) -> Iterator[Claim]:
    """What the code saves each method, and who needs less than whom with either code."""
    yield from SAVED.against(*((entropy, paper) for paper, entropy in PAIRS))(logs)
    yield from ORDER.against(*combinations(LINES, 2))(logs)


def figure(name: str, title: str) -> Figure:
    """The methods with either code, on a problem."""
    return Figure(name, title, Grid(name, {"quick": []}), ORDER.draw, claims)


FIGURES = [figure("a9a", "logistic regression on a9a"), figure("autoencoder", "an autoencoder")]
