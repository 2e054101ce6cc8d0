"""PermK paper, Figure 9 (Appendix A.6): MARINA with PermK and with RandK, all steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mpisim.analysis.claims import Claim
from mpisim.analysis.papers import permk_autoencoder as common
from mpisim.analysis.papers.permk_autoencoder import GRID, SCALES
from mpisim.runs.log.reader import Log

__all__ = ["GRID", "SCALES", "claims", "draw"]

COMPRESSORS = ("permk", "randk")
SOURCE = "PermK paper, Appendix A.6 and Figure 9"
ALSO = f"{SOURCE}: as on quadratics (A.3)"


def draw(logs: Sequence[Log]) -> Any:
    """A row for each lambda, a column for each p-hat."""
    return common.draw(logs, "PermK paper, Figure 9", COMPRESSORS, all_steps=True)


def claims(logs: Sequence[Log]) -> list[Claim]:
    """PermK is better than RandK everywhere, and tolerates larger steps."""
    found = common.runs(logs)
    return [common.better(found, panel, *COMPRESSORS, SOURCE) for panel in found] + [
        common.steps_claim(found, panel, *COMPRESSORS, ALSO) for panel in found
    ]
