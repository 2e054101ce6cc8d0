"""MARINA: faster non-convex distributed learning with compression."""

from mpisim.analysis.study import Figure, Grid, Measurement

from . import evidence, fig1, fig2

# Paper: the published number of rounds for all, whatever stops the quick runs. Rows every 10 rounds
# place each target within 1% of the costs that decide, in 250 MB of logs.
PAPER = ["run.rounds=40000", "run.log_every=10", "run.stop={}"]
FIG1 = Grid("fig1", {"quick": [], "paper": PAPER})
FIG2 = Grid(
    "fig2",
    {"quick": [], "paper": []},
    files={"paper": "fig2-paper"},
    instead={"cifar10-part": "generated"},
)
EVIDENCE = Measurement(
    f"{__package__}.measure_evidence", "logs/marina-evidence", {"quick": 1000}, evidence.read
)
TITLE = "MARINA against DIANA, VR-MARINA against VR-DIANA"
FIGURES = [
    Figure("fig1", TITLE, FIG1, fig1.draw, fig1.claims),
    Figure("fig2", "VR-MARINA against VR-DIANA, training a network", FIG2, fig2.draw, fig2.claims),
    Figure(
        "evidence",
        "what the published code of Figure 1 changes",
        EVIDENCE,
        evidence.draw,
        evidence.claims,
    ),
]
