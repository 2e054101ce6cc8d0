"""What the claims about both experiments share: who is ahead, what is saved, which steps work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from mpisim.analysis.claims import (
    Claim,
    Evidence,
    Verdict,
    at_one_target,
    growing,
    number,
    state,
)

Saying = tuple[str, str]  # the paper's words, and where they stand


def ahead(names: Mapping[str, str], pair: tuple[str, str], said: Saying, found: Iterable) -> Claim:
    """The claim that the first of the pair needs fewer bits, in all of what was ``found``."""
    less, more = pair
    return state(f"{names[less]} needs fewer bits than {names[more]}", *said, list(found))


def gains(where: str, compared: Mapping[str, Evidence]) -> Evidence:
    """Whether what is saved grows from one comparison to the next, at one target."""
    target, values = at_one_target(list(compared.values()))
    if not values:
        return Evidence(where, "no target that all reached", Verdict.UNDECIDED)
    found = dict(zip(compared, values, strict=True))
    told = ", ".join(f"{name}: {number(gain)} times" for name, gain in found.items())
    numbers = {"gains": found, "target": target}
    return Evidence(where, f"{told}, to {target:g}", growing(values), numbers)


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
