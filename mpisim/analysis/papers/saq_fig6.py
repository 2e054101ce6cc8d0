"""SAQ, Appendix B.2: DCGD+ and DIANA+ (quant+) against DCGD and DIANA (quant)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mpisim.analysis.claims import Claim
from mpisim.analysis.papers import saq
from mpisim.analysis.papers.saq import GRID, SCALES
from mpisim.runs.log.reader import Log

__all__ = ["GRID", "SCALES", "claims", "draw"]

SOURCE = "SAQ, Appendix B.2 (the captions' Figures 6 and 8, Figure 7 in the text)"
TITLE = "SAQ, Appendix B.2: quant+ against quant (Figure 6 by its caption, 7 in the text)"
PAIRS = (("DCGD+ (quant+)", "DCGD (quant)"), ("DIANA+ (quant+)", "DIANA (quant)"))
LABELS = ("DCGD (quant)", "DIANA (quant)", "DCGD+ (quant+)", "DIANA+ (quant+)")


def draw(logs: Sequence[Log]) -> Any:
    """A column for each data set; over rounds, megabytes and seconds."""
    return saq.draw(logs, LABELS, TITLE)


def claims(logs: Sequence[Log]) -> list[Claim]:
    """What B.2 says of quant+: "significant improvement"."""
    found = saq.runs(logs)
    said: list[Claim] = []
    for less, more in PAIRS:
        said += saq.pairs(found, less, more, SOURCE)
        said += saq.together(found, less, more, SOURCE, "on every data set", saq.always)
    return said
