"""SAQ, Appendix B.3: what DIANA+ (block quant+) owes to blocks, and what to smoothness."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mpisim.analysis.claims import Claim
from mpisim.analysis.papers import saq
from mpisim.analysis.papers.saq import GRID, SCALES
from mpisim.runs.log.reader import Log

__all__ = ["GRID", "SCALES", "claims", "draw"]

SOURCE = "SAQ, Appendix B.3 and Figure 5"
TITLE = "SAQ, Appendix B.3: ablation of DIANA+ (block quant+), Figure 5"
# What each step from DIANA (quant) to DIANA+ (block quant+) brings.
STEPS = (
    ("DIANA (block quant)", "DIANA (quant)", "blocks"),
    ("DIANA+ (block quant)", "DIANA (block quant)", "smoothness matrices"),
    ("DIANA+ (block quant+)", "DIANA+ (block quant)", "steps of each block's own"),
    ("DIANA+ (block quant+)", "DIANA (quant)", "both"),
)
LABELS = (
    "DIANA (quant)",
    "DIANA (block quant)",
    "DIANA+ (block quant)",
    "DIANA+ (block quant+)",
)


def draw(logs: Sequence[Log]) -> Any:
    """A column for each data set; over rounds, megabytes and seconds."""
    return saq.draw(logs, LABELS, TITLE)


def claims(logs: Sequence[Log]) -> list[Claim]:
    """What B.3 says: DIANA+ (block quant+) gains from the blocks and from the matrices."""
    found = saq.runs(logs)
    said: list[Claim] = []
    for less, more, what in STEPS:
        said += saq.pairs(found, less, more, f"{SOURCE}: what {what} bring")
    return said
