"""Smoothness-aware quantization techniques, Appendix B."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from mpisim.analysis.claims import Claim
from mpisim.analysis.study import Figure, Grid, Grids, Measurement
from mpisim.runs.log.reader import Log

from . import claims, fig3, schemes, seconds, table2
from .claims import LARGER, MOST, Comparison
from .schemes import SPENT

ROUNDS = ["run.rounds=5000", "run.log_every=10"]
ALONE = ["run.ranks=2"]  # for which any machine has cores
TWO = ["problem.workers=2"]  # one rank a worker, as in the paper, on two cores
# As long as DIANA+ takes to be ahead; at quick the same for all data sets.
TO_BREAK_EVEN: dict[str, list[str]] = {"quick": ["run.rounds=10000"], "paper": []}
A8A = {"a8a": "a9a"}  # which Table 2 calls a9a
VECTORS = {"quick": 10, "paper": 100}  # sparse x for each h
BITS = Measurement(f"{__package__}.measure_fig3", "logs/saq-fig3", VECTORS, fig3.read)
SECONDS = Grid("seconds", {"quick": ALONE, "paper": [*ROUNDS, *ALONE], "two": TWO})
A_RANK_EACH = Grid("seconds", {"quick": ALONE, "paper": ROUNDS, "two": TWO})
SCALES: dict[str, list[str]] = {"quick": [], "paper": ROUNDS, "two": []}
LONG = TO_BREAK_EVEN | {"two": TO_BREAK_EVEN["quick"]}
PAPER = Grids((Grid("schemes", SCALES), Grid("quant", LONG), SECONDS))
CODE_SCHEMES = Grid("code", {"quick": [], "paper": ROUNDS}, instead=A8A)
CODE = Grids((CODE_SCHEMES, Grid("code-quant", TO_BREAK_EVEN, instead=A8A)))
TABLE2 = Grid("table2", {"quick": [], "paper": ROUNDS})
PUBLISHED = ", as in the published code"


class Shown(NamedTuple):
    """A figure, for the paper's text and for its published code.

    Attributes
    ----------
    what, source : the title of the picture, and where the paper speaks of it
    curves : in the order of the legend
    plus : the scheme of DIANA+ whose break-even with DIANA (quant) is told
    norms : the scheme whose B norms the paper calls negligible
    """

    name: str
    title: str
    what: str
    source: str
    curves: Sequence[str]
    compared: Sequence[Comparison]
    plus: str = ""
    norms: str = ""

    def figures(self) -> Iterator[Figure]:
        """By the paper's text, with seconds, and by its published code."""
        pair = (self.plus, DIANA) if self.plus else ()
        for prefix, suffix, source in (("", "", PAPER), ("code-", PUBLISHED, CODE)):
            name, title = prefix + self.name, self.title + suffix
            what = f"SAQ, Appendix {self.what}{suffix}"
            draw: Any = partial(schemes.draw, what, self.curves, pair)
            yield Figure(name, title, source, draw, partial(self.claims, source is PAPER))

    def claims(self, timed: bool, logs: Sequence[Log]) -> Iterator[Claim]:
        """What the paper says of the figure; of seconds where runs were ``timed``."""
        source = f"SAQ, Appendix {self.source}"
        yield from claims.claims(source, self.compared, timed, logs)
        if self.norms:
            yield claims.norms(source, self.norms, logs)


DCGD, DIANA, BLOCKS = "DCGD (quant)", "DIANA (quant)", "DIANA (block quant)"
DCGD_BLOCK_QUANT, DCGD_QUANT = "DCGD+ (block quant+)", "DCGD+ (quant+)"
BLOCK_FIXED, BLOCK_QUANT = "DIANA+ (block quant)", "DIANA+ (block quant+)"
FIXED, QUANT, RAND_TAU = "DIANA+ (quant)", "DIANA+ (quant+)", "DIANA+ (rand-τ+)"
MATRICES = "smoothness matrices"
# The captions of the appendix and its text number the figures differently; the names here are
# those of the captions.
SHOWN = [
    Shown(
        "fig4",
        "DCGD+ and DIANA+ (block quant+) against DCGD and DIANA (quant)",
        "B.2: block quant+ against quant (Figure 4 by its caption, 6 in the text)",
        "B.2 (the caption's Figure 4, Figure 6 in the text)",
        (DCGD, DIANA, DCGD_BLOCK_QUANT, BLOCK_QUANT),
        (
            Comparison(DCGD_BLOCK_QUANT, DCGD, "outperform", LARGER),
            Comparison(BLOCK_QUANT, DIANA, "outperform", LARGER),
        ),
        plus=BLOCK_QUANT,
        norms=BLOCK_QUANT,
    ),
    Shown(
        "fig5",
        "what blocks and what smoothness matrices bring",
        "B.3: ablation of DIANA+ (block quant+), Figure 5",
        "B.3 and Figure 5",
        (DIANA, BLOCKS, BLOCK_FIXED, BLOCK_QUANT),
        (
            Comparison(BLOCKS, DIANA, "iterations", brings="blocks", hedged=True),
            Comparison(BLOCK_FIXED, BLOCKS, "either", brings=MATRICES, hedged=True),
            Comparison(BLOCK_QUANT, BLOCK_FIXED, brings="varying levels of blocks"),
            Comparison(BLOCK_QUANT, DIANA, "both", brings="both"),
        ),
        plus=BLOCK_QUANT,
    ),
    Shown(
        "fig6",
        "DCGD+ and DIANA+ (quant+) against DCGD and DIANA (quant)",
        "B.2: quant+ against quant (Figure 6 by its caption, 7 in the text)",
        "B.2 (the captions' Figures 6 and 8, Figure 7 in the text)",
        (DCGD, DIANA, DCGD_QUANT, QUANT),
        (
            Comparison(DCGD_QUANT, DCGD, "significant", word="significantly"),
            Comparison(QUANT, DIANA, "significant", word="significantly"),
        ),
        plus=QUANT,
    ),
    Shown(
        "fig7",
        "varying against fixed numbers of levels",
        "B.3: varying and fixed levels (Figure 7 by its caption, 6 in the text)",
        "B.3 (the caption's Figure 7, Figure 6 in the text)",
        (FIXED, QUANT),
        (Comparison(QUANT, FIXED, "varying", MOST),),
    ),
    Shown(
        "fig8",
        "quant+, block quant+ and the sparsification rand-tau+",
        "B.4: quantization and sparsification (Figure 8 in the text)",
        "B.4 (Figure 8 in the text; the caption there is that of Figure 6)",
        (RAND_TAU, BLOCK_QUANT, QUANT),
        (
            Comparison(QUANT, RAND_TAU, "always", costs=SPENT),
            Comparison(BLOCK_QUANT, RAND_TAU, "beats", LARGER, costs=SPENT),
        ),
    ),
]
TIMED = "where the seconds of a round go, and seconds modelled at 10, 100 and 1000 Mbit/s"
SIZES = "the data, what is sent before round 0, and the bits of three codes"
FIGURES = [
    Figure("fig3", "bits of a quantized message against |h^-1|", BITS, fig3.draw, fig3.claims),
    *(figure for shown in SHOWN for figure in shown.figures()),
    Figure("seconds", TIMED, A_RANK_EACH, seconds.draw),
    Figure("table2", SIZES, TABLE2, table2.draw, table2.claims),
]
