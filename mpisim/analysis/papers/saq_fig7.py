"""SAQ, Appendix B.3: DIANA+ with varying and with fixed numbers of levels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mpisim.analysis.claims import Claim
from mpisim.analysis.papers import saq
from mpisim.analysis.papers.saq import GRID, SCALES
from mpisim.runs.log.reader import Log

__all__ = ["GRID", "SCALES", "claims", "draw"]

SOURCE = "SAQ, Appendix B.3 (the caption's Figure 7, Figure 6 in the text)"
TITLE = "SAQ, Appendix B.3: varying and fixed levels (Figure 7 by its caption, 6 in the text)"
PAIR = ("DIANA+ (quant+)", "DIANA+ (quant)")
LABELS = ("DIANA+ (quant)", "DIANA+ (quant+)")


def draw(logs: Sequence[Log]) -> Any:
    """A column for each data set; over rounds, megabytes and seconds."""
    return saq.draw(logs, LABELS, TITLE)


def claims(logs: Sequence[Log]) -> list[Claim]:
    """What B.3 says: "beneficial on most of the datasets"."""
    found = saq.runs(logs)
    return [
        *saq.pairs(found, *PAIR, SOURCE),
        *saq.together(found, *PAIR, SOURCE, "on most data sets", saq.mostly),
    ]
