"""SAQ, Appendix B.4: DIANA+ with quant+, block quant+ and the sparsification rand-τ+."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mpisim.analysis.claims import Claim
from mpisim.analysis.papers import saq
from mpisim.analysis.papers.saq import GRID, SCALES
from mpisim.runs.log.reader import Log

__all__ = ["GRID", "SCALES", "claims", "draw"]

SOURCE = "SAQ, Appendix B.4 (Figure 8 in the text; the caption there is that of Figure 6)"
TITLE = "SAQ, Appendix B.4: quantization and sparsification (Figure 8 in the text)"
LABELS = ("DIANA+ (rand-τ+)", "DIANA+ (block quant+)", "DIANA+ (quant+)")


def draw(logs: Sequence[Log]) -> Any:
    """A column for each data set; over rounds, megabytes and seconds."""
    return saq.draw(logs, LABELS, TITLE)


def claims(logs: Sequence[Log]) -> list[Claim]:
    """What B.4 says of megabytes and seconds: quant+ always better than rand-τ+, block quant+ when
    d is high."""
    found = saq.runs(logs)
    rand, block, varying = LABELS
    every, larger = ("on every data set", saq.always), ("when d is larger", saq.when_larger)
    return [
        *saq.pairs(found, varying, rand, SOURCE, saq.SPENT),
        *saq.together(found, varying, rand, SOURCE, *every, saq.SPENT),
        *saq.pairs(found, block, rand, SOURCE, saq.SPENT),
        *saq.together(found, block, rand, SOURCE, *larger, saq.SPENT),
    ]
