"""What the SAQ paper claims of Figures 4 to 8: pairs of schemes, compared on all data sets."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from mpisim.analysis.claims import Claim, fewer, not_judged, number, without_start
from mpisim.analysis.curves import Axis
from mpisim.analysis.study import data_sets
from mpisim.runs.log.reader import Log

from .curves import COSTS, DISTANCE, ROUNDS, Found, dimension, runs


def when_larger(ratios: list[float]) -> bool:
    """Above 1 for the larger half of the data sets."""
    return bool(ratios) and min(ratios[(len(ratios) + 1) // 2 :] or ratios) > 1


def mostly(ratios: list[float]) -> bool:
    """Above 1 for more than half of the data sets."""
    return 2 * sum(r > 1 for r in ratios) > len(ratios)


def always(ratios: list[float]) -> bool:
    """Above 1 for every data set."""
    return bool(ratios) and min(ratios) > 1


WORDS: dict[Callable[[list[float]], bool], str] = {
    when_larger: "when d is larger",
    mostly: "on most data sets",
    always: "on every data set",
}


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Says that ``less`` needs fewer of each cost than ``more``.

    ``where`` is on which of the data sets the paper says so, if it does, and ``brings`` what makes
    the difference, for the source.
    """

    less: str
    more: str
    where: Callable[[list[float]], bool] | None = None
    brings: str = ""
    costs: dict[Axis, str] = dataclasses.field(default_factory=lambda: COSTS)


def claims(source: str, comparisons: Sequence[Comparison], logs: Sequence[Log]) -> Iterator[Claim]:
    """Each comparison on each data set, and over all of them where the paper names some."""
    found = runs(logs)
    for one in comparisons:
        own = f"{source}: what {one.brings} bring" if one.brings else source
        measured = list(pairs(found, one, own))
        yield from measured
        if one.where is None:
            continue
        for i, unit in enumerate(one.costs.values()):
            of_unit = measured[i :: len(one.costs)]
            text = f"{one.less} needs fewer {unit} than {one.more} {WORDS[one.where]}"
            if any(claim.holds is None for claim in of_unit):
                yield not_judged(text, own)
                continue
            each = zip(data_sets(found), of_unit, strict=True)
            # A ratio that was not measured counts as 0.
            ratios = {name: float(c.details.get("median_ratio", 0)) for name, c in each}
            said = (f"{n} (d = {dimension(found, n)}) {number(r)}" for n, r in ratios.items())
            holds = one.where([*ratios.values()])
            yield Claim(text, own, ", ".join(said), holds, {"ratios": ratios})


@dataclasses.dataclass(frozen=True)
class Later(Axis):
    """An axis without what was spent in row 0, the exchange before round 0."""

    of: Axis = dataclasses.field(kw_only=True)

    def values(self, log: Log) -> np.ndarray:
        values = self.of.values(log)
        return values - values[0]


def pairs(found: Found, one: Comparison, source: str) -> Iterator[Claim]:
    """For each data set and cost: ``less`` needs less than ``more`` to their common level."""
    for name in data_sets(found):
        pair = found.get((name, one.less), []), found.get((name, one.more), [])
        for cost, unit in one.costs.items():
            text = f"{name}, d = {dimension(found, name)}: {one.less} needs fewer {unit} than"
            claim = fewer(f"{text} {one.more}", source, *pair, cost, DISTANCE)
            if cost is not ROUNDS:
                later = Later(cost.name, log=cost.log, of=cost)
                start = "what is sent before round 0"
                claim = without_start(claim, pair, (later, later), start, y=DISTANCE)
            yield claim
