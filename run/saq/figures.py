"""Smoothness-aware quantization techniques, Appendix B."""

from collections.abc import Sequence
from functools import partial

from mpisim.analysis.study import Figure, Grid, Measurement

from . import curves, fig3, table2
from .claims import LARGER, MOST, Comparison, claims
from .curves import SPENT

SEEDS = "sweep.seeds=[{run={seed=1}}, {run={seed=2}}, {run={seed=3}}]"
LONG = ["run.rounds=5000", "run.log_every=10"]
VECTORS = {"quick": 10, "paper": 100}  # sparse x for each h
BITS = Measurement(f"{__package__}.measure_fig3", "logs/saq-fig3", VECTORS, fig3.read)
SCHEMES = Grid("schemes", {"quick": [SEEDS], "paper": LONG})
# What is said.
OUTPERFORM = (
    "DCGD+ (block quant+) and DIANA+ (block quant+) outperform DCGD (quant) and DIANA (quant) when"
    " d is larger"
)
EITHER = (
    "the advantage of DIANA+ (block quant+) over DIANA (quant) may come from either splitting the"
    " features into blocks or exploiting the smoothness matrix"
)
SIGNIFICANT = "DCGD+ (quant+) and DIANA+ (quant+) lead to significant improvement"
VARYING = "the varying number of levels are beneficial on most of the datasets"
ALWAYS = (
    "the varying-step quantization technique (quant+) is always better than the smoothness-aware"
    " sparsification [...], in terms of both communication cost and wall-clock time"
)
BEATS = (
    "Our block quantization technique also beats sparsification when the dimension of the model is"
    " relatively high"
)


def _figure(
    name: str, title: str, what: str, source: str, shown: Sequence[str], *compared: Comparison
) -> Figure:
    """A row of the list: the curves that it shows, in the order of the legend, and its claims."""
    draw = partial(curves.draw, f"SAQ, Appendix {what}", shown)
    return Figure(name, title, SCHEMES, draw, partial(claims, f"SAQ, Appendix {source}", compared))


# The captions of the appendix and its text number the figures differently; the names here are
# those of the captions.
FIGURES = [
    Figure("fig3", "bits of a quantized message against |h^-1|", BITS, fig3.draw, fig3.claims),
    _figure(
        "fig4",
        "DCGD+ and DIANA+ (block quant+) against DCGD and DIANA (quant)",
        "B.2: block quant+ against quant (Figure 4 by its caption, 6 in the text)",
        "B.2 (the caption's Figure 4, Figure 6 in the text)",
        ("DCGD (quant)", "DIANA (quant)", "DCGD+ (block quant+)", "DIANA+ (block quant+)"),
        Comparison("DCGD+ (block quant+)", "DCGD (quant)", OUTPERFORM, LARGER),
        Comparison("DIANA+ (block quant+)", "DIANA (quant)", OUTPERFORM, LARGER),
    ),
    _figure(
        "fig5",
        "what blocks and what smoothness matrices bring",
        "B.3: ablation of DIANA+ (block quant+), Figure 5",
        "B.3 and Figure 5",
        ("DIANA (quant)", "DIANA (block quant)", "DIANA+ (block quant)", "DIANA+ (block quant+)"),
        Comparison("DIANA (block quant)", "DIANA (quant)", EITHER, brings="blocks"),
        Comparison(
            "DIANA+ (block quant)", "DIANA (block quant)", EITHER, brings="smoothness matrices"
        ),
        Comparison(
            "DIANA+ (block quant+)",
            "DIANA+ (block quant)",
            EITHER,
            brings="steps of each block's own",
        ),
        Comparison("DIANA+ (block quant+)", "DIANA (quant)", EITHER, brings="both"),
    ),
    _figure(
        "fig6",
        "DCGD+ and DIANA+ (quant+) against DCGD and DIANA (quant)",
        "B.2: quant+ against quant (Figure 6 by its caption, 7 in the text)",
        "B.2 (the captions' Figures 6 and 8, Figure 7 in the text)",
        ("DCGD (quant)", "DIANA (quant)", "DCGD+ (quant+)", "DIANA+ (quant+)"),
        Comparison("DCGD+ (quant+)", "DCGD (quant)", SIGNIFICANT),
        Comparison("DIANA+ (quant+)", "DIANA (quant)", SIGNIFICANT),
    ),
    _figure(
        "fig7",
        "varying against fixed numbers of levels",
        "B.3: varying and fixed levels (Figure 7 by its caption, 6 in the text)",
        "B.3 (the caption's Figure 7, Figure 6 in the text)",
        ("DIANA+ (quant)", "DIANA+ (quant+)"),
        Comparison("DIANA+ (quant+)", "DIANA+ (quant)", VARYING, MOST),
    ),
    _figure(
        "fig8",
        "quant+, block quant+ and the sparsification rand-tau+",
        "B.4: quantization and sparsification (Figure 8 in the text)",
        "B.4 (Figure 8 in the text; the caption there is that of Figure 6)",
        ("DIANA+ (rand-τ+)", "DIANA+ (block quant+)", "DIANA+ (quant+)"),
        Comparison("DIANA+ (quant+)", "DIANA+ (rand-τ+)", ALWAYS, costs=SPENT),
        Comparison("DIANA+ (block quant+)", "DIANA+ (rand-τ+)", BEATS, LARGER, costs=SPENT),
    ),
    Figure(
        "table2",
        "the data, what is sent before round 0, and the bits of three codes",
        Grid("table2", {"quick": [], "paper": LONG}),
        table2.draw,
        table2.claims,
    ),
]
