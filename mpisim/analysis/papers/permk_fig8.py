"""PermK paper, Figure 8 (Appendix A.5): the autoencoder with its regulariser, best steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mpisim.analysis.claims import Claim, number
from mpisim.analysis.papers import permk_autoencoder as common
from mpisim.analysis.papers.permk_autoencoder import GRID, SCALES
from mpisim.runs.log.reader import Log

__all__ = ["GRID", "SCALES", "claims", "draw"]

SOURCE = "PermK paper, Appendix A.5 and Figure 8"


def draw(logs: Sequence[Log]) -> Any:
    """A row for each lambda, a column for each p-hat."""
    return common.draw(logs, "PermK paper, Figure 8", common.COMPRESSORS, all_steps=False)


def claims(logs: Sequence[Log]) -> list[Claim]:
    """PermK is ahead where shards are alike, for any lambda, and by more the larger lambda is."""
    found = common.runs(logs)
    alike = [panel for panel in found if panel[1] >= 0.9]
    said = [
        common.better(found, panel, "permk", more, SOURCE)
        for panel in alike
        for more in ("randk", "topk")
    ]
    for p in dict.fromkeys(panel[1] for panel in found):
        said += [_grows(found, p, more) for more in ("randk", "topk")]
    return said


def _grows(found: common.Runs, p: float, more: str) -> Claim:
    name = common.NAMES[more]
    text = f"p-hat = {p:g}: the larger λ, the fewer bits PermK needs compared to {name}"
    ratios = {
        panel[0]: common.ratio(found, panel, "permk", more) for panel in found if panel[1] == p
    }
    measured = ", ".join(f"λ = {at:g}: {number(ratio)} times" for at, ratio in ratios.items())
    grows = len(ratios) > 1 and bool(np.all(np.diff(list(ratios.values())) > 0))
    return Claim(text, SOURCE, measured, grows, {"ratios": ratios})
