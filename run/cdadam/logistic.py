"""Figures 2 and 4: AMSGrad with four ways of compressing, logistic regression; and their claims."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from mpisim.analysis import labels, panels
from mpisim.analysis.claims.comparing import compare, pairs, value_at
from mpisim.analysis.claims.verdicts import Claim, Evidence, Verdict, decided, number, state
from mpisim.analysis.curves import ROUNDS, Axis, Named
from mpisim.analysis.study import BestSteps, best_steps, by_data, data_sets, with_steps
from mpisim.runs.log.reader import Log

from .equal_cost import BITS, FOUR_LOOKS, QUOTES, at_equal_cost, by_seed

ORDER = ("phishing", "mushrooms", "a9a", "w8a")
SIGN, TOP_1 = "scaled-sign", "topk"  # of Figure 2, of Figure 4
CDADAM, PLAIN, WORSE = "cd-adam", "amsgrad", ("ef-amsgrad", "naive-amsgrad")
LOOKS = dict(zip((CDADAM, PLAIN, *WORSE), FOUR_LOOKS, strict=True))
NORM = Named("grad_norm_sq", log=True, text="gradient norm", of=np.sqrt)
SPREAD = "denominator_spread"

Groups = dict[tuple[str, float, str], BestSteps]  # by data set, nu and method
FIG2 = "CD-Adam, Section 7.1 and Figure 2"
FIG4 = "CD-Adam, Appendix E.1 and Figure 4"
EARLY = 0.25  # "the early stages" are this share of the rounds
ONE_STEP = 1.1  # denominators that differ by less give all coordinates about one step

Compare = Callable[[str, BestSteps, BestSteps], Evidence]
Statement = tuple[tuple[str, ...], str, Compare]  # of CD-Adam against rivals


def best(logs: Iterable[Log], compressor: str, x: Axis = BITS) -> tuple[Groups, Groups]:
    """The best steps for each data set and nu: for claims on costs, and for those on norms.

    For costs CD-Adam and uncompressed AMSGrad are tuned to the deepest target that both reach, for
    the least of x. For norms each compressed method has the smallest one at the end. With most
    steps AMSGrad ends at the floor of its 32-bit values, where noise would choose: its step stays.
    """
    kinds = compressor, "identity"
    compressed = [log for log in logs if log.config["compressor"]["name"] in kinds]
    deep = [log for log in compressed if log.attrs["method"] not in WORSE]
    others = [log for log in compressed if log.attrs["method"] != PLAIN]
    cheapest = _groups(best_steps(deep, x, panel=_panel))
    smallest = _groups(best_steps(others, x, targets=(), panel=_panel))
    return by_data(smallest | cheapest, ORDER), by_data(cheapest | smallest, ORDER)


def _groups(tuned: Iterable[BestSteps]) -> Groups:
    return {(*_panel(one.logs[0]), str(one.logs[0].attrs["method"])): one for one in tuned}


def _panel(log: Log) -> tuple[str, float]:
    return str(log.config["problem"]["data"]), nu_of(log)


def nu_of(log: Log) -> float:
    """nu of AMSGrad."""
    return float(log.config["method"]["nu"])


def draw(compressor: str, logs: list[Log]) -> Any:
    """A column for each data set; over the bits sent both ways and over the rounds, for each nu.

    Over the bits steps are those for costs, over the rounds those for norms.
    """
    costs, norms = best(logs, compressor)
    names = data_sets(costs)
    rows = [(nu, x) for nu in _nus(costs) for x in (BITS, ROUNDS)]

    def fill(panel: Any, row: tuple[float, Axis], data: str) -> None:
        nu, x = row
        groups = costs if x is BITS else norms
        for method in reversed(LOOKS):
            if one := groups.get((data, nu, method)):
                label = f"α = {one.step:g}"
                panels.curve(panel, one.logs, x, NORM, *LOOKS[method], label=label)
        panels.dress(panel, x, NORM, x.label(logs[0]))
        panel.legend(fontsize=6, loc="upper left", bbox_to_anchor=(1, 1), handlelength=1)

    left = [f"ν = {nu:g}: {NORM.label(logs[0])}" for nu, _ in rows]
    return panels.matrix(rows, names, fill, labels=left, titles=names, entries=entries())


def entries() -> list[panels.Entry]:
    """The legend: the methods."""
    return panels.entries_of({labels.method(method): look for method, look in LOOKS.items()})


def spread(one: BestSteps) -> float:
    """The largest ratio of two coordinates' denominators in a row, the median over the seeds."""
    return float(np.median([np.nanmax(log.column(SPREAD)) for log in one.logs]))


def fig2(logs: Iterable[Log]) -> Iterator[Claim]:
    """Five claims of all data sets for each nu, and what nu does."""
    costs, norms = best(logs, SIGN)
    for nu in _nus(costs):
        yield _all(costs, nu, FEWER, QUOTES["fewer_2"], FIG2)
        yield _all(norms, nu, SMALLER_BITS, QUOTES["budgets_2"], FIG2)
        yield _all(norms, nu, SAME_END, QUOTES["final_2"], FIG2)
        yield _all(norms, nu, SMALLER_ROUNDS, QUOTES["stops_2"], FIG2)
        yield _all(norms, nu, STOPS, QUOTES["stops_2"], FIG2)
        yield _one_step(costs, nu)


def fig4(logs: Iterable[Log]) -> Iterator[Claim]:
    """Four claims of all data sets for each nu."""
    costs, norms = best(logs, TOP_1)
    better, similar = QUOTES["better_4"], QUOTES["similar_4"]
    for nu in _nus(costs):
        yield _all(norms, nu, SMALLER_BITS, better, FIG4)
        yield _all(norms, nu, SMALLER_ROUNDS, better, FIG4)
        yield _all(costs, nu, FEWER, similar, FIG4)
        yield _all(norms, nu, SAME_END, similar, FIG4)


def _nus(groups: Groups) -> list[float]:
    return sorted({nu for _, nu, _ in groups})


def _all(groups: Groups, nu: float, statement: Statement, quote: str, source: str) -> Claim:
    """A claim of CD-Adam against rivals, on all data sets, with this nu."""
    (rivals, text, compared), each = statement, []
    for data in data_sets(groups):
        for rival in rivals:
            where = data if rivals == (PLAIN,) else f"{data}, {labels.method(rival)}"
            pair = [groups.get((data, nu, method)) for method in (CDADAM, rival)]
            if pair[0] is None or pair[1] is None:
                each.append(Evidence(where, "no step of both ended well", Verdict.UNDECIDED))
            else:
                each.append(with_steps(compared(where, pair[0], pair[1]), pair[0], pair[1]))
    return state(f"{text}, ν = {nu:g}", quote, source, each)


def _bits(where: str, cdadam: BestSteps, plain: BestSteps) -> Evidence:
    """ "Much better communication efficiency"."""
    return compare(where, cdadam.logs, plain.logs, BITS, word="much")


def _norm(where: str, cdadam: BestSteps, rival: BestSteps, x: Axis, word: str) -> Evidence:
    """CD-Adam's norm against the rival's, where both have spent what the cheaper run did."""
    both = pairs(cdadam.logs, rival.logs)
    _, norms = at_equal_cost(both, x, NORM)
    ratios = np.array([of_rival / of_cdadam for of_cdadam, of_rival in norms])
    return by_seed(where, both, ratios, word, "CD-Adam's norm")


def _stops(where: str, cdadam: BestSteps, rival: BestSteps) -> Evidence:
    """The rival's norm at the end of the first quarter is around that at the end."""
    both = pairs(rival.logs, rival.logs)
    ratios = []
    for log, _ in both:
        quarter = EARLY * float(ROUNDS.values(log)[-1])
        early, end = (value_at(log, NORM, ROUNDS, until) for until in (quarter, np.inf))
        ratios.append(max(1.0, early / end))  # one that rises has stopped falling, too
    text = f"the norm at the end, after the first {EARLY:.0%} of the rounds"
    return by_seed(where, both, np.array(ratios), "around", text)


# "Much smaller", and "roughly the same final gradient norm".
SMALLER = "CD-Adam has a much smaller norm than error feedback and naive at equal"
SMALLER_BITS: Statement = WORSE, f"{SMALLER} bits", partial(_norm, x=BITS, word="much")
SMALLER_ROUNDS: Statement = WORSE, f"{SMALLER} rounds", partial(_norm, x=ROUNDS, word="much")
SAME = "CD-Adam ends where uncompressed AMSGrad ends, at equal rounds"
SAME_END: Statement = (PLAIN,), SAME, partial(_norm, x=ROUNDS, word="around")
FEWER: Statement = (PLAIN,), "CD-Adam needs much fewer bits than uncompressed AMSGrad", _bits
EARLIER = "error feedback and naive compression stop falling in the first quarter"
STOPS: Statement = WORSE, EARLIER, _stops


def _one_step(groups: Groups, nu: float) -> Claim:
    """What nu does to AMSGrad: the project's own claim."""
    each = []
    for data in data_sets(groups):
        if one := groups.get((data, nu, PLAIN)):
            largest = spread(one)
            small, measured = decided(largest < ONE_STEP), f"{number(largest)} times"
            each.append(Evidence(data, measured, small, {"spread": largest}))
    text = f"AMSGrad's denominators differ by less than {ONE_STEP - 1:.0%}: it is heavy ball"
    return state(f"{text}, ν = {nu:g}", "", FIG2, each)
