"""What the SAQ paper claims of Figures 4 to 8: pairs of schemes, compared on all data sets."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

from mpisim.analysis.claims import (
    Claim,
    Evidence,
    Later,
    Rule,
    compare,
    every,
    larger_half,
    most,
    state,
    told_without,
)
from mpisim.analysis.curves import Axis
from mpisim.analysis.study import data_sets
from mpisim.runs.log.reader import Log

from .curves import COSTS, ERROR, ROUNDS, Found, dimension, runs

BEFORE = "what is sent before round 0"


@dataclasses.dataclass(frozen=True)
class Where:
    """On which data sets the paper says something.

    Attributes
    ----------
    words : as the claim puts it
    rule : judges the evidence that counts
    which : marks what counts, from evidence by rising d
    """

    words: str
    rule: Rule
    which: Callable[[Sequence[Evidence]], Sequence[Evidence]] = list


EVERY = Where("on every data set", every)
MOST = Where("on most data sets", most)
LARGER = Where("when d is larger", every, larger_half)


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Says that ``less`` needs fewer of each cost than ``more``.

    ``quote`` is what the paper says, and ``brings`` what makes the difference, for the source.
    """

    less: str
    more: str
    quote: str
    where: Where = EVERY
    brings: str = ""
    costs: dict[Axis, str] = dataclasses.field(default_factory=lambda: COSTS)


def claims(source: str, comparisons: Sequence[Comparison], logs: Sequence[Log]) -> Iterator[Claim]:
    """A claim for each comparison and cost, with the data sets as evidence."""
    found = runs(logs)
    for one in comparisons:
        own = f"{source}: what {one.brings} bring" if one.brings else source
        for cost, unit in one.costs.items():
            text = f"{one.less} needs fewer {unit} than {one.more} {one.where.words}"
            evidence = one.where.which([pair(found, one, cost, name) for name in data_sets(found)])
            yield state(text, one.quote, own, evidence, one.where.rule)


def pair(found: Found, one: Comparison, cost: Axis, data: str) -> Evidence:
    """``less`` against ``more`` on a data set, to a share of |x^0 - x*|^2."""
    where = f"{data} (d = {dimension(found, data)})"
    logs = found.get((data, one.less), []), found.get((data, one.more), [])
    whole = compare(where, *logs, cost, ERROR)
    if cost is ROUNDS:
        return whole
    later = Later(cost.name, log=cost.log, of=cost)
    return told_without(whole, compare(where, *logs, later, ERROR), BEFORE)
