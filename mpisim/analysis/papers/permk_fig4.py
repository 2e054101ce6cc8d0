"""PermK paper, Figures 4 and 5: MARINA with RandK and with PermK over step sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mpisim.analysis.claims import Claim
from mpisim.analysis.papers import permk_quadratic as quadratic
from mpisim.analysis.papers.permk_quadratic import SCALES
from mpisim.runs.log.reader import Log

__all__ = ["GRID", "SCALES", "claims", "draw"]
GRID = "permk-fig1"
SOURCE = "PermK paper, A.3 and Figures 4 and 5"
APART = 1.5  # steps a factor of 2 apart in theory's units; theory's own differ by a few percent


def draw(logs: list[Log]) -> Any:
    """The three best steps of each."""
    return quadratic.grid(logs, {"randk": 3, "permk": 3})


def claims(logs: list[Log]) -> list[Claim]:
    """PermK is better, tolerates larger steps, and the more so the larger n is."""
    found = quadratic.tuned(logs)
    better = [quadratic.compared(found, task, "permk", "randk", SOURCE) for task in found]
    return [*better, *_steps(found), *quadratic.growing(found, SOURCE)]


def _steps(found: quadratic.Found) -> Iterator[Claim]:
    for task, own in found.items():
        text = f"{quadratic.name_of(task)}: PermK tolerates larger steps"
        if "permk" not in own or "randk" not in own:
            yield Claim(text, SOURCE, "not measured: no step of one got anywhere", False)
            continue
        largest = {name: own[name].tolerated for name in ("permk", "randk")}
        best = {name: float(own[name].best.attrs["stepsize"]) for name in largest}
        measured = (
            f"largest {largest['permk']:.3g} and {largest['randk']:.3g},"
            f" best {best['permk']:.3g} and {best['randk']:.3g}"
        )
        details = {"largest": largest, "best": best}
        holds = largest["permk"] > APART * largest["randk"]
        yield Claim(text, SOURCE, measured, holds, details)
