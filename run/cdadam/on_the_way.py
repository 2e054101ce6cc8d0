"""What the paper says of curves on their way, and of rivals that are ahead."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from mpisim.analysis.claims import Claim, Evidence, Verdict, every, pairs, state
from mpisim.analysis.curves import EPOCHS, LOSS, NORM, Axis

from .equal_cost import (
    ACCURACY,
    COSTS,
    QUOTES,
    TEST_ACCURACY,
    TEST_LOSS,
    TEST_NORM,
    Runs,
    ahead,
    at_equal,
    better,
    by_seed,
    gone,
    name,
)

EF21, ONE_BIT, CDADAM = "ef21-2way", "1bit-adam", "cd-adam"
FIRST, MIDWAY = 0.25, 0.5  # "the early stage", "intermediately": these shares of what both spent
NORMS = NORM, TEST_NORM

Compare = Callable[[Runs, Runs], Iterator[Evidence]]


def claims(groups: Mapping[str, Runs], x: Axis, number: int, source: str) -> Iterator[Claim]:
    """The statements of Figure ``number``, whose curves are over x."""
    cost = f"at equal {COSTS[x]}"

    def each(one: str, other: str, compare: Compare) -> Iterator[Evidence]:
        missing = [method for method in (one, other) if method not in groups]
        yield from map(gone, missing)
        if not missing:
            yield from compare(groups[one], groups[other])

    if quote := QUOTES["early"].get(str(number)):
        faster = x is EPOCHS  # 1-bit Adam is: its warm-up sends everything
        ys = (LOSS, ACCURACY) if faster else (LOSS,)
        ranks = (ONE_BIT, CDADAM) if faster else (CDADAM, ONE_BIT)
        alike = each(EF21, CDADAM, lambda a, b: (similar(a, b, x, y) for y in ys))
        word = "fewer" if faster else "much"  # "faster" and "much slower"
        apart = each(*ranks, lambda a, b: (ahead(a, b, x, y, FIRST, word) for y in ys))
        text = f"at first EF21 is where CD-Adam is, 1-bit Adam {'ahead' if faster else 'behind'}"
        yield state(f"{text}, {cost}", quote, source, [*alike, *apart])
    if quote := QUOTES["worse"].get(str(number)):
        two = LOSS, TEST_ACCURACY
        cdadam, ef21 = (
            each(one, ONE_BIT, lambda a, b: (_named(better(a, b, y, x, "much"), a) for y in two))
            for one in (CDADAM, EF21)
        )
        text = f"1-bit Adam is behind CD-Adam and EF21 {cost}"
        yield state(text, quote, source, [*cdadam, *ef21])
    if quote := QUOTES["midway"].get(str(number)):
        four = LOSS, TEST_LOSS, ACCURACY, TEST_ACCURACY
        on_the_way = each(EF21, CDADAM, lambda a, b: (ahead(a, b, x, y, MIDWAY) for y in four))
        text = f"midway EF21 is ahead of CD-Adam, {cost}"
        yield state(text, quote, source, on_the_way)
    if number == 9:
        # At equal epochs: CD-Adam has ended before 1-bit Adam has sent its first rows' bits.
        text = "1-bit Adam's gradient norm is lower at first, and grows later"
        both = each(ONE_BIT, CDADAM, lambda a, b: (_lower_then_up(a, b, EPOCHS, y) for y in NORMS))
        yield state(text, QUOTES["diverges_9"], source, both)
    if number == 10:
        two = LOSS, ACCURACY
        training = each(ONE_BIT, CDADAM, lambda a, b: (better(a, b, y, x) for y in two))
        yield state(f"1-bit Adam is ahead in training {cost}", QUOTES["ahead_10"], source, training)


def _named(evidence: Evidence, runs: Runs) -> Evidence:
    """Evidence that also says which method is compared."""
    return dataclasses.replace(evidence, where=f"{name(runs)}, {evidence.where}")


def similar(one: Runs, other: Runs, x: Axis, y: Axis) -> Evidence:
    """At all rows of the early stage the two are around each other."""
    both = pairs(one, other)
    places, values = at_equal(both, x, y, FIRST)
    if not places.size:
        return Evidence(y.label(one[0]), "no row is that early", Verdict.UNDECIDED)
    ratios = values[:, 0] / values[:, 1]  # (seeds, places)
    rows = [by_seed("", both, row, "around") for row in ratios.T]
    medians = [one.numbers["median"] for one in rows]
    low, high = min(medians), max(medians)
    measured = f"{low:.3g} to {high:.3g} times in the first {FIRST:.0%}"
    numbers = {"low": low, "high": high, "ratios": ratios.T.tolist(), "word": "around"}
    return Evidence(y.label(one[0]), measured, every(rows), numbers)


def _lower_then_up(one: Runs, other: Runs, x: Axis, y: Axis) -> Evidence:
    """Below ``other`` at first, and at the end above both ``other`` and its own least."""
    first, both = ahead(one, other, x, y, FIRST), pairs(one, other)
    if not both:
        return first
    least = [float(y.values(log).min()) for log, _ in both]
    end, rivals = ([float(y.values(pair[i])[-1]) for pair in both] for i in (0, 1))
    later = np.array([e / max(a, b) for e, a, b in zip(end, least, rivals, strict=True)])
    three = (float(np.median(values)) for values in (least, end, rivals))
    measured = first.measured + "; least {:.3g}, at the end {:.3g} against {:.3g}".format(*three)
    numbers = first.numbers | {"least": least, "end": end, "other": rivals}
    verdict = every([first, by_seed("", both, later, "fewer")])
    return Evidence(y.label(one[0]), measured, verdict, numbers)
