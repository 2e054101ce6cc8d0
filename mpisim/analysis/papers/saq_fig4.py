"""SAQ, Appendix B.2: DCGD+ and DIANA+ (block quant+) against DCGD and DIANA (quant)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mpisim.analysis.claims import Claim
from mpisim.analysis.papers import saq
from mpisim.analysis.papers.saq import GRID, SCALES
from mpisim.runs.log.reader import Log

__all__ = ["GRID", "SCALES", "claims", "draw"]

SOURCE = "SAQ, Appendix B.2 (the caption's Figure 4, Figure 6 in the text)"
TITLE = "SAQ, Appendix B.2: block quant+ against quant (Figure 4 by its caption, 6 in the text)"
PAIRS = (("DCGD+ (block quant+)", "DCGD (quant)"), ("DIANA+ (block quant+)", "DIANA (quant)"))
LABELS = ("DCGD (quant)", "DIANA (quant)", "DCGD+ (block quant+)", "DIANA+ (block quant+)")


def draw(logs: Sequence[Log]) -> Any:
    """A column for each data set; over rounds, megabytes and seconds."""
    return saq.draw(logs, LABELS, TITLE)


def claims(logs: Sequence[Log]) -> list[Claim]:
    """What B.2 says of block quant+: better than quant "when d is larger"."""
    found = saq.runs(logs)
    said: list[Claim] = []
    for less, more in PAIRS:
        said += saq.pairs(found, less, more, SOURCE)
        said += saq.together(found, less, more, SOURCE, "when d is larger", saq.when_larger)
    return said
