"""PermK paper, Figure 1: MARINA with RandK and PermK, EF21 with TopK, each with its best step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mpisim.analysis.claims import Claim, number
from mpisim.analysis.papers import permk_quadratic as quadratic
from mpisim.analysis.papers.permk_quadratic import HOMOGENEOUS, MANY, SCALES, SOME
from mpisim.runs.log.reader import Log

__all__ = ["SCALES", "claims", "draw"]
SOURCE = "PermK paper, Section 5.1 and Figure 1 (A.2 and Figure 3)"


def draw(logs: list[Log]) -> Any:
    """The best step of each method."""
    return quadratic.grid(logs, {"randk": 1, "permk": 1, "topk": 1})


def claims(logs: list[Log]) -> list[Claim]:
    """PermK against RandK everywhere, and against TopK where Section 5.1 says who is ahead."""
    found = quadratic.tuned(logs)
    own = [quadratic.compared(found, task, "permk", "randk", SOURCE) for task in found]
    return [*own, *_against_topk(found), *_as_table_4(found)]


def _against_topk(found: quadratic.Found) -> Iterator[Claim]:
    """PermK is ahead for n >= 1000 and L_± <= 0.21, and for n = 10,000; else TopK is, where L_± is
    large. Of n = 10 and small L_± the paper says nothing."""
    for task in found:
        n, noise = task
        if n >= MANY or (n >= SOME and noise <= HOMOGENEOUS):
            yield quadratic.compared(found, task, "permk", "topk", SOURCE)
        elif noise > HOMOGENEOUS:
            yield quadratic.compared(found, task, "topk", "permk", SOURCE)


def _as_table_4(found: quadratic.Found) -> Iterator[Claim]:
    """What PermK gains over RandK shrinks as L_± grows: Table 4 has L_± in place of L_+."""
    for n in dict.fromkeys(n for n, _ in found):
        noises = [noise for own, noise in found if own == n]
        low, high = (quadratic.gain(found, (n, noise)) for noise in (min(noises), max(noises)))
        text = f"n = {n}: PermK saves more against RandK at noise {min(noises):g}"
        measured = f"{number(low)} times, and {number(high)} times at noise {max(noises):g}"
        source = f"{SOURCE}: the differences reproduce Table 4"
        yield Claim(text, source, measured, low > high, {"gains": [low, high]})
