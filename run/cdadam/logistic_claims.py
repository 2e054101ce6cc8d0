"""What Section 7.1 and Appendix E.1 say of Figures 2 and 4, for each nu."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from mpisim.analysis import labels
from mpisim.analysis.claims import (
    Claim,
    Evidence,
    Verdict,
    compare,
    decided,
    number,
    pairs,
    state,
    undecided_at_edge,
    value_at,
    with_note,
)
from mpisim.analysis.curves import ROUNDS, Axis
from mpisim.analysis.study import BestSteps, data_sets
from mpisim.runs.log.reader import Log

from .equal_cost import BITS, Pairs, at_edge, by_seed
from .logistic import NORM, OWN, PLAIN, SIGN, TOP_1, WORSE, Found, best, spread
from .quotes import QUOTES

FIG2 = "CD-Adam, Section 7.1 and Figure 2"
FIG4 = "CD-Adam, Appendix E.1 and Figure 4"
EARLY = 0.25  # "the early stages" are this share of the rounds
ONE_STEP = 1.1  # denominators that differ by less give all coordinates about one step

Compare = Callable[[str, BestSteps, BestSteps], Evidence]


def fig2(logs: Iterable[Log]) -> Iterator[Claim]:
    """Five claims of all data sets for each nu, and what nu does."""
    found = best(logs, SIGN)
    for nu in _nus(found):
        yield _fewer_bits(found, nu, QUOTES["fewer_2"], FIG2)
        yield _smaller(found, nu, BITS, QUOTES["budgets_2"], FIG2)
        yield _same_end(found, nu, QUOTES["final_2"], FIG2)
        yield _smaller(found, nu, ROUNDS, QUOTES["stops_2"], FIG2)
        text = "error feedback and naive compression stop falling in the first quarter"
        yield _all(found, nu, WORSE, text, QUOTES["stops_2"], FIG2, _stops)
        yield _one_step(found, nu, FIG2)


def fig4(logs: Iterable[Log]) -> Iterator[Claim]:
    """Four claims of all data sets for each nu."""
    found = best(logs, TOP_1)
    for nu in _nus(found):
        yield _smaller(found, nu, BITS, QUOTES["better_4"], FIG4)
        yield _smaller(found, nu, ROUNDS, QUOTES["better_4"], FIG4)
        yield _fewer_bits(found, nu, QUOTES["similar_4"], FIG4)
        yield _same_end(found, nu, QUOTES["similar_4"], FIG4)


def _nus(found: Found) -> list[float]:
    return sorted({nu for _, nu, _ in found})


def _all(
    found: Found,
    nu: float,
    rivals: Iterable[str],
    text: str,
    quote: str,
    source: str,
    compared: Compare,
) -> Claim:
    """A claim of CD-Adam against rivals, on all data sets, with this nu."""
    each = []
    for data in data_sets(found):
        for rival in rivals:
            where = data if rivals == (PLAIN,) else f"{data}, {labels.method(rival)}"
            pair = [found.get((data, nu, method)) for method in (OWN, rival)]
            if pair[0] is None or pair[1] is None:
                each.append(Evidence(where, "no step of both ended well", Verdict.UNDECIDED))
            else:
                each.append(_with_steps(compared(where, pair[0], pair[1]), pair[0], pair[1]))
    return state(f"{text}, ν = {nu:g}", quote, source, each)


def _with_steps(evidence: Evidence, own: BestSteps, rival: BestSteps) -> Evidence:
    steps = [own.step, rival.step]
    noted = with_note(evidence, f"steps {own.step:g} and {rival.step:g}", steps=steps)
    edges = [own.edge, rival.edge]
    return undecided_at_edge(noted, edges) if noted.word else at_edge(noted, edges)


def _fewer_bits(found: Found, nu: float, quote: str, source: str) -> Claim:
    """ "Much better communication efficiency"."""

    def compared(where: str, own: BestSteps, plain: BestSteps) -> Evidence:
        return compare(where, own.logs, plain.logs, BITS, word="much")

    text = "CD-Adam needs much fewer bits than uncompressed AMSGrad"
    return _all(found, nu, (PLAIN,), text, quote, source, compared)


def _smaller(found: Found, nu: float, x: Axis, quote: str, source: str) -> Claim:
    """ "Much smaller" where both have spent what the cheaper run did."""
    unit = "rounds" if x is ROUNDS else "bits"

    def compared(where: str, own: BestSteps, rival: BestSteps) -> Evidence:
        return by_seed(where, *_ends(own, rival, x), "much", "CD-Adam's norm")

    text = f"CD-Adam has a much smaller norm than error feedback and naive at equal {unit}"
    return _all(found, nu, WORSE, text, quote, source, compared)


def _same_end(found: Found, nu: float, quote: str, source: str) -> Claim:
    """ "Roughly the same final gradient norm"."""

    def compared(where: str, own: BestSteps, plain: BestSteps) -> Evidence:
        return by_seed(where, *_ends(own, plain, ROUNDS), "around", "CD-Adam's norm")

    text = "CD-Adam ends where uncompressed AMSGrad ends, at equal rounds"
    return _all(found, nu, (PLAIN,), text, quote, source, compared)


def _ends(own: BestSteps, rival: BestSteps, x: Axis) -> tuple[Pairs, np.ndarray]:
    """The runs of each seed, and how many times CD-Adam's norm the rival's is at equal x."""
    both = pairs(own.logs, rival.logs)
    ratios = []
    for pair in both:
        budget = min(float(x.values(log)[-1]) for log in pair)
        ours, theirs = (value_at(log, NORM, x, budget) for log in pair)
        ratios.append(theirs / ours)
    return both, np.array(ratios)


def _stops(where: str, own: BestSteps, rival: BestSteps) -> Evidence:
    """The rival's norm at the end of the first quarter is around that at the end."""
    both = pairs(rival.logs, rival.logs)
    ratios = []
    for log, _ in both:
        quarter = EARLY * float(ROUNDS.values(log)[-1])
        early, end = (value_at(log, NORM, ROUNDS, until) for until in (quarter, np.inf))
        ratios.append(max(1.0, early / end))  # one that rises has stopped falling, too
    text = f"the norm at the end, after the first {EARLY:.0%} of the rounds"
    return by_seed(where, both, np.array(ratios), "around", text)


def _one_step(found: Found, nu: float, source: str) -> Claim:
    """What nu does to AMSGrad: the project's own claim."""
    each = []
    for data in data_sets(found):
        if one := found.get((data, nu, PLAIN)):
            largest = spread(one)
            said = f"{number(largest)} times"
            numbers = {"spread": largest}
            each.append(Evidence(data, said, decided(largest < ONE_STEP), numbers))
    text = f"AMSGrad's denominators differ by less than {ONE_STEP - 1:.0%}: it is heavy ball"
    return state(f"{text}, ν = {nu:g}", "", source, each)
