"""Appendix M: what PermK in groups gains where Hessians agree inside groups and not between."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from mpisim.analysis import panels, style
from mpisim.analysis.claims import Claim, compare, state, undecided_at_edge
from mpisim.analysis.curves import GRADIENT
from mpisim.analysis.study import BestSteps, best_steps, quotes
from mpisim.runs.log.reader import Log

from .comparison import LATER
from .quadratic import BITS

SAYING = quotes(__file__)["groups"]
LOOKS: dict[int, tuple[str, Any]] = {
    1: (style.COLOURS[1], (0, (1.2, 1.2))),
    2: (style.COLOURS[2], "-"),
}
THEORY, BEST = "the theory step", "the best step"
Chosen = dict[str, dict[int, tuple[float, list[Log]]]]


def tuned(logs: list[Log]) -> dict[int, BestSteps]:
    """{number of groups: the best steps}."""
    return {int(s.logs[0].config["compressor"]["groups"]): s for s in best_steps(logs, BITS)}


def choose(logs: list[Log]) -> Chosen:
    """{which step: {number of groups: (multiple, its runs)}}."""
    every = tuned(logs)
    theory = {groups: (1.0, of.steps[1.0]) for groups, of in every.items() if 1.0 in of.steps}
    return {THEORY: theory, BEST: {groups: (of.step, of.logs) for groups, of in every.items()}}


def draw(logs: list[Log]) -> Any:
    """|grad f|^2 over bits, mean over the seeds, with the theory step and with the best."""
    chosen = choose(logs)

    def fill(panel: Any, _: str, which: str) -> None:
        for groups, (multiple, runs) in sorted(chosen[which].items()):
            panels.curve(panel, runs, BITS, GRADIENT, *LOOKS[groups], label=f"×{multiple:g}")
        panels.dress(panel, BITS, GRADIENT, "bits per worker, without indices")
        panel.legend(fontsize=7, loc="upper right")

    entries = panels.entries_of({"one group": LOOKS[1], "two groups": LOOKS[2]})
    titles, labels = list(chosen), [GRADIENT.label(logs[0])]
    return panels.matrix([""], titles, fill, labels=labels, titles=titles, entries=entries)


def claims(logs: list[Log]) -> Iterator[Claim]:
    """Two groups need fewer bits than one: with the theory steps, which (51) is about."""
    chosen, edges = choose(logs), [steps.edge for steps in tuned(logs).values()]
    evidence = []
    for which, runs in chosen.items():
        two, one = (runs.get(groups, (0.0, []))[1] for groups in (2, 1))
        fewer = compare(which, two, one, BITS, first=(LATER, LATER))
        fewer = fewer if which == THEORY else undecided_at_edge(fewer, edges)
        evidence.append(dataclasses.replace(fewer, counts=which == THEORY))
    hedge = f'{SAYING["source"]}; the paper hedges: "{SAYING["quote"]}"'  # so no result of it
    yield state("PermK in two groups needs fewer bits than in one", "", hedge, evidence)
