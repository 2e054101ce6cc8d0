"""PermK paper, Figure 10 (Appendix A.7): EF21 + TopK and MARINA + PermK, all steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mpisim.analysis.claims import Claim
from mpisim.analysis.papers import permk_autoencoder as common
from mpisim.analysis.papers.permk_autoencoder import GRID, SCALES
from mpisim.runs.log.reader import Log

__all__ = ["GRID", "SCALES", "claims", "draw"]

COMPRESSORS = ("permk", "topk")
SOURCE = "PermK paper, Appendix A.7 and Figure 10"
SMALL = 1e-4  # the text says lambda in {0, 0.00001}, of which the figures have 0


def draw(logs: Sequence[Log]) -> Any:
    """A row for each lambda, a column for each p-hat."""
    return common.draw(logs, "PermK paper, Figure 10", COMPRESSORS, all_steps=True)


def claims(logs: Sequence[Log]) -> list[Claim]:
    """PermK is ahead where shards are alike; TopK where they are not and lambda is small."""
    found = common.runs(logs)
    return [claim for panel in found for claim in _claims(found, panel)]


def _claims(found: common.Runs, panel: common.Panel) -> Iterator[Claim]:
    lambda_, p = panel
    if p >= 0.9:
        yield common.steps_claim(found, panel, "permk", "topk", SOURCE)
        yield common.better(found, panel, "permk", "topk", SOURCE)
    elif p <= 0.5:
        yield common.steps_claim(found, panel, "permk", "topk", SOURCE, alike=True)
        if lambda_ < SMALL:
            yield common.better(found, panel, "topk", "permk", SOURCE)
