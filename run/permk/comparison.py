"""What the claims about both experiments share: who is ahead, what is saved, which steps work."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from mpisim.analysis.claims.comparing import DECADES, LaterBits, Targets, compare
from mpisim.analysis.claims.judging import (
    LARGEST,
    OTHER_COSTS,
    again,
    fewest,
    ratios_of,
    with_costs,
    with_note,
)
from mpisim.analysis.claims.verdicts import Claim, Evidence, Verdict, number, state
from mpisim.analysis.curves import GRADIENT, Axis
from mpisim.analysis.study import BestSteps, best_steps, compare_steps, diverged, quotes
from mpisim.runs.log.reader import Log

P = TypeVar("P", bound=tuple)
Saying = tuple[str, str]  # the paper's words, and where they stand

# Bits without the dense messages g^0, which all methods send before their first step.
LATER = LaterBits("paper_bits_up", log=False)
# PermK is compared with one other at a time: a third method does not move their target.
WITH_RANDK, WITH_TOPK = ("permk", "randk"), ("permk", "topk")


def sayings(experiment: str) -> dict[str, Saying]:
    """What the paper says of one experiment, by name."""
    table = quotes(__file__)[experiment]
    return {name: (one["quote"], one["source"]) for name, one in table.items()}


def ahead(
    names: Mapping[str, str], pair: tuple[str, str], saying: Saying, evidence: Iterable
) -> Claim:
    """The claim that the first of the pair needs fewer bits, in all evidence."""
    less, more = pair
    return state(f"{names[less]} needs fewer bits than {names[more]}", *saying, list(evidence))


def against(
    where: str, both: Sequence[BestSteps | None], axes: tuple[Axis, Axis], **how: Any
) -> Evidence:
    """The first of ``both`` against the second, with their best steps; ``how`` as for `compare`.

    axes : the bits of the paper's figures, without indices; and those that were sent, which stand
        beside it. The bits without g^0 do as well
    """
    less, more = both
    one = compare_steps(where, less, more, axes[0], first=(LATER, LATER), **how)
    if less is None or more is None or "target" not in one.numbers:
        return one
    sent = compare(where, less.logs, more.logs, axes[1], **how)
    if sent.numbers["by_target"] == one.numbers["by_target"]:  # no indices are sent
        return one
    one = with_costs(one, "indices", sent)
    return with_note(one, f"in bits that were sent: {sent.measured}")


def tuned(
    logs: Iterable[Log],
    names: Collection[str],
    panel: Callable[[Log], P],
    x: Axis,
    y: Axis = GRADIENT,
    targets: Targets = DECADES,
) -> dict[P, dict[str, BestSteps]]:
    """{panel: {compressor: its best steps}}, by panel; the axes and targets as for `best_steps`.

    The best step needs the fewest bits to the target that all ``names`` reach in a panel.
    """
    compared = [log for log in logs if log.config["compressor"]["name"] in names]
    ran = [log for log in diverged(compared) if log.config["compressor"]["name"] in names]
    # also those without any step that went well, which are then not decided
    groups: dict[P, dict[str, BestSteps]] = {panel(log): {} for log in (*compared, *ran)}
    for steps in best_steps(compared, x, y, targets):
        log = steps.logs[0]
        groups[panel(log)][str(log.config["compressor"]["name"])] = steps
    return dict(sorted(groups.items()))


def gains(
    where: str,
    compared: Mapping[str, Evidence],
    pairs: Iterable[tuple[str, str]] | None = None,
    notes: Mapping[str, str] | None = None,
) -> list[Evidence]:
    """Whether what is saved grows from one comparison to the next.

    The gains that are told are those at the deepest target that all reached. Without one nothing is
    decided, nor with a best step at an edge of the grid.

    pairs : of names, if not each and the next
    notes : what is said behind the ratio of a comparison, by name
    """
    edges = [str(e.numbers["edge"]) for e in compared.values() if e.numbers.get("edge")]
    if edges:
        text = f"edge of the grid: {', '.join(dict.fromkeys(edges))}"
        return [Evidence(where, text, Verdict.UNDECIDED)]
    medians = {name: _exact_medians(one) for name, one in compared.items()}
    common = set.intersection(*map(set, medians.values())) if medians else set()
    if not common:
        return [Evidence(where, "no target that all reached", Verdict.UNDECIDED)]
    target, notes = min(common), notes or {}
    times = {name: number(of[target]) for name, of in medians.items()}
    shown = {name: f"{name}: {gain} times{notes.get(name, '')}" for name, gain in times.items()}
    return [
        with_note(
            of_gains(f"{where}, {b} over {a}", compared[a], compared[b]),
            f"the gains at {target:g}: {shown[a]}, {shown[b]}",
        )
        for a, b in (pairwise(compared) if pairs is None else pairs)
    ]


def _exact_medians(one: Evidence) -> dict[float, float]:
    """{target: the median ratio} of `compare`, where no ratio is a bound."""
    table = one.numbers.get("by_target", {})
    exact = {float(t): ratios_of(at) for t, at in table.items() if not any(at["bounds"])}
    return {target: float(np.median(ratios)) for target, ratios in exact.items()}


def of_gains(where: str, low: Evidence, high: Evidence) -> Evidence:
    """Evidence that ``high`` has larger ratios than ``low``, both of `compare`, seed by seed.

    Judged as these are: at every target that decides both, and by their other costs.
    """
    both = low.numbers, high.numbers
    others = set().union(*(one.get("other_costs", {}) for one in both))
    numbers = {
        "seeds": [seed for seed in both[0]["seeds"] if seed in both[1]["seeds"]],
        "of": both[1]["of"],
        "first": both[1]["first"],
        "by_target": _gains(both, ""),
        "other_costs": {name: _gains(both, name) for name in OTHER_COSTS if name in others},
        "fewest": max(one.get("fewest", 0) for one in both),
        "runs": both[0].get("runs", {}) | both[1].get("runs", {}),
    }
    return again(Evidence(where, "", Verdict.UNDECIDED, numbers, word="fewer"))


def _gains(both: Sequence[Mapping[str, Any]], costs: str) -> dict[str, Any]:
    """{target: the ratios of the second over those of the first, and bounds}, of some costs."""
    tables = [one.get("other_costs", {}).get(costs, one["by_target"]) for one in both]
    gains: dict[str, Any] = {}
    for target in (target for target in tables[0] if target in tables[1]):
        sides = zip(both, tables, strict=True)
        low, high = (_by_seed(one["seeds"], table[target]) for one, table in sides)
        ratios, bounds = [], []
        for (a, below), (b, above) in ((low[seed], high[seed]) for seed in low if seed in high):
            # two bounds on one side give none of the ratio, nor does a run that spent nothing
            if (below and below == above) or not 0 < a < LARGEST or not 0 < b < LARGEST:
                break
            ratios.append(b / a)
            bounds.append(above or -below)
        else:
            gains |= {target: {"ratios": ratios, "bounds": bounds}} if ratios else {}
    return gains


def _by_seed(seeds: Sequence[int], one: Mapping[str, Any]) -> dict[int, tuple[float, int]]:
    return dict(zip(seeds, zip(ratios_of(one), one["bounds"], strict=True), strict=True))


def steps(
    where: str,
    both: Sequence[BestSteps | None],
    largest: tuple[float, float],
    rule: Callable[[float], Verdict],
    written: Callable[[float], str] = "{:.3g}".format,
) -> Evidence:
    """``rule`` on the ratio of the largest steps with which ``both`` work; 0 where none does.

    It needs as many seeds as other comparisons do.
    """
    first, second = largest
    if not first or not second:
        return Evidence(where, "no step of one of them works", Verdict.UNDECIDED)
    sides = [side.logs for side in both if side]
    seeds = min(map(len, sides))
    verdict = rule(first / second) if seeds >= fewest(*sides) else Verdict.UNDECIDED
    few = "" if seeds > 1 else " (1 seed)"
    measured = f"{written(first)} and {written(second)} are the largest that work{few}"
    return Evidence(where, measured, verdict, {"largest": [first, second]})
