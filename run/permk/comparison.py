"""What the claims about both experiments share: who is ahead, what is saved, which steps work."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar

from mpisim.analysis.claims.comparing import at_one_target, compare
from mpisim.analysis.claims.judging import of_seeds, with_note
from mpisim.analysis.claims.verdicts import Claim, Evidence, Verdict, number, state
from mpisim.analysis.curves import Axis
from mpisim.analysis.study import BestSteps, compare_steps, quotes

K = TypeVar("K")
Saying = tuple[str, str]  # the paper's words, and where they stand

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
        beside it
    """
    less, more = both
    one = compare_steps(where, less, more, axes[0], **how)
    if less is None or more is None or "target" not in one.numbers:
        return one
    sent = compare(where, less.logs, more.logs, axes[1], **how)
    if sent.numbers["by_target"] == one.numbers["by_target"]:  # no indices are sent
        return one
    text = f"in bits that were sent: {sent.measured}"
    return with_note(one, text, sent=sent.numbers["by_target"])


def at_target(
    where: str, compared: Mapping[K, Evidence]
) -> tuple[float, dict[K, float]] | Evidence:
    """The deepest target that all reached, and the ratios there; or evidence that decides nothing.

    A best step at an edge of the grid decides nothing, either.
    """
    edges = dict.fromkeys(
        str(e.numbers["edge"]) for e in compared.values() if e.numbers.get("edge")
    )
    if edges:
        return Evidence(where, f"edge of the grid: {', '.join(edges)}", Verdict.UNDECIDED)
    target, values = at_one_target(list(compared.values()))
    if not values:
        return Evidence(where, "no target that all reached", Verdict.UNDECIDED)
    return target, dict(zip(compared, values, strict=True))


def gains(
    where: str,
    compared: Mapping[str, Evidence],
    pairs: Iterable[tuple[str, str]] | None = None,
    notes: Mapping[str, str] | None = None,
) -> list[Evidence]:
    """Whether what is saved grows from one comparison to the next, at one target.

    pairs : of names, if not each and the next
    notes : what is said behind the ratio of a comparison, by name
    """
    there = at_target(where, compared)
    if isinstance(there, Evidence):
        return [there]
    target, times = there
    shown = {name: f"{name}: {number(gain)} times" for name, gain in times.items()}
    shown = {name: text + (notes or {}).get(name, "") for name, text in shown.items()}
    return [
        _more_is_saved(
            f"{where}, {b} over {a}",
            (compared[a], compared[b]),
            target,
            f"the gain ({shown[a]}, {shown[b]}, to {target:g})",
        )
        for a, b in (pairwise(compared) if pairs is None else pairs)
    ]


def _more_is_saved(
    where: str, both: tuple[Evidence, Evidence], target: float, text: str
) -> Evidence:
    """Whether the second has the larger ratios, seed by seed, at a target that both reached."""
    low, high = (_by_seed(one, target) for one in both)
    ratios = [high[seed] / low[seed] for seed in low if seed in high]
    if not ratios:
        return Evidence(where, "no seed in both", Verdict.UNDECIDED)
    one = of_seeds(where, ratios, "fewer", max(e.numbers.get("fewest", 0) for e in both), text)
    runs = both[0].numbers.get("runs", {}) | both[1].numbers.get("runs", {})
    return dataclasses.replace(one, numbers=one.numbers | {"target": target, "runs": runs})


def _by_seed(one: Evidence, target: float) -> dict[int, float]:
    ratios = one.numbers["by_target"][f"{target:g}"]["ratios"]
    return dict(zip(one.numbers["seeds"], ratios, strict=True))


def steps(
    where: str,
    largest: tuple[float, float],
    rule: Callable[[float], Verdict],
    written: Callable[[float], str] = "{:.3g}".format,
) -> Evidence:
    """``rule`` on the ratio of the largest steps with which two methods work; 0 where none does."""
    first, second = largest
    if not first or not second:
        return Evidence(where, "no step of one of them works", Verdict.UNDECIDED)
    measured = f"{written(first)} and {written(second)} are the largest that work"
    return Evidence(where, measured, rule(first / second), {"largest": [first, second]})
