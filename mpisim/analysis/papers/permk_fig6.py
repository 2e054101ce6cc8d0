"""PermK paper, Figures 6 and 7: EF21 with TopK and MARINA with PermK over step sizes."""

from __future__ import annotations

from typing import Any

from mpisim.analysis.claims import Claim
from mpisim.analysis.papers import permk_quadratic as quadratic
from mpisim.analysis.papers.permk_quadratic import HOMOGENEOUS, MANY, SCALES
from mpisim.runs.log.reader import Log

__all__ = ["GRID", "SCALES", "claims", "draw"]
GRID = "permk-fig1"
SOURCE = "PermK paper, A.4 and Figures 6 and 7"


def draw(logs: list[Log]) -> Any:
    """The three best steps of each."""
    return quadratic.grid(logs, {"topk": 3, "permk": 3})


def claims(logs: list[Log]) -> list[Claim]:
    """PermK is faster where n > d, whatever L_±; else TopK is where L_± is large."""
    found, out = quadratic.tuned(logs), []
    for task in found:
        n, noise = task
        if n >= MANY:
            out.append(quadratic.compared(found, task, "permk", "topk", SOURCE))
        elif noise > HOMOGENEOUS:
            out.append(quadratic.compared(found, task, "topk", "permk", SOURCE))
    return out
