"""PermK paper, Figure 2 (Section 5.2): the autoencoder without regulariser, best steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mpisim.analysis.claims import Claim, number
from mpisim.analysis.papers import permk_autoencoder as common
from mpisim.analysis.papers.permk_autoencoder import GRID, SCALES
from mpisim.runs.log.reader import Log

__all__ = ["GRID", "SCALES", "claims", "draw"]

SOURCE = "PermK paper, Section 5.2 and Figure 2"
SAME = 1.25  # two needs of bits are "almost the same" within this factor
SIGNIFICANT = 1.5  # from this factor on a gain is "significant"


def draw(logs: Sequence[Log]) -> Any:
    """A column for each p-hat."""
    return common.draw(_plain(logs), "PermK paper, Figure 2", common.COMPRESSORS, all_steps=False)


def claims(logs: Sequence[Log]) -> list[Claim]:
    """What Section 5.2 says of the three, by p-hat."""
    found = common.runs(_plain(logs))
    return [claim for panel in found for claim in _claims(found, panel)]


def _plain(logs: Sequence[Log]) -> list[Log]:
    """The runs with lambda = 0."""
    return [log for log in logs if log.config["problem"]["lambda"] == 0]


def _claims(found: common.Runs, panel: common.Panel) -> Iterator[Claim]:
    yield common.better(found, panel, "permk", "randk", SOURCE)
    if panel[1] >= 0.9:
        yield common.better(found, panel, "permk", "topk", SOURCE)
    elif panel[1] > 0.5:
        ratio = common.ratio(found, panel, "permk", "topk")
        text = f"{common.where(panel)}: PermK and TopK need almost the same bits"
        measured = f"{number(ratio)} times (up to {SAME:g} either way holds)"
        alike = 1 / SAME <= ratio <= SAME
        yield Claim(text, SOURCE, measured, alike, {"ratio": ratio})
    else:
        yield common.better(found, panel, "topk", "permk", SOURCE)
        for less in ("topk", "permk"):
            ratio = common.ratio(found, panel, less, "randk")
            text = f"{common.where(panel)}: {common.NAMES[less]} significantly outperforms RandK"
            measured = f"{number(ratio)} times (from {SIGNIFICANT:g} on holds)"
            yield Claim(text, SOURCE, measured, ratio >= SIGNIFICANT, {"ratio": ratio})
