"""Figures 2 and 4: AMSGrad with four ways of compressing, logistic regression."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from mpisim.analysis import labels, panels, style
from mpisim.analysis.claims import (
    Claim,
    Evidence,
    Reach,
    Verdict,
    decided,
    judge,
    number,
    state,
    value_at,
)
from mpisim.analysis.curves import ROUNDS, Axis, Named
from mpisim.analysis.study import best_run, by_data, data_sets
from mpisim.runs.log.reader import Log

from .equal_cost import BITS

FIG2 = "CD-Adam, Section 7.1 and Figure 2"
FIG4 = "CD-Adam, Appendix E.1 and Figure 4"
# What is said.
BUDGETS = (
    "CD-Adam achieves the best performances on all four datasets against the other three"
    " compression strategies"
)
FINAL = (
    "under the same iteration complexity, our proposed algorithm achieves roughly the same final"
    " gradient norm as the uncompressed AMSGrad across all four datasets"
)
STOPS = (
    "the error feedback and the naive compression strategies, whose gradient norm stops decreasing"
    " at the early stages"
)
TOP1 = (
    "CD-Adam achieved the best performances for all four datasets against the other three"
    " compression strategies"
)
BETTER = (
    "CD-Adam achieves a much better result than AMSGrad with error feedback and naive compression"
    " in terms of both communication efficiency and the final performances"
)
SIMILAR = (
    "compared with uncompressed AMSGrad, our communication efficiency is greatly improved while"
    " maintaining similar final performances"
)
ORDER = ("phishing", "mushrooms", "a9a", "w8a")
LOOKS: dict[str, tuple[str, Any]] = {
    "cd-adam": (style.COLOURS[0], "-"),
    "amsgrad": (style.COLOURS[1], (0, (4, 1.5))),
    "ef-amsgrad": (style.COLOURS[2], (0, (1, 1.2))),
    "naive-amsgrad": (style.COLOURS[3], (0, (5, 1.5, 1, 1.5))),
}
OWN, WORSE = "cd-adam", ("ef-amsgrad", "naive-amsgrad")
SAME = 3.0  # two gradient norms are "roughly the same" within this factor
STALL = 2.0  # a method that gains less in the second half of its rounds stalls

NORM = Named("grad_norm_sq", log=True, text="gradient norm", of=np.sqrt)

Found = dict[tuple, Log]  # {(data, method): run}


def runs(logs: list[Log]) -> Found:
    """{(data, method): the run with the best step}: the smallest last gradient norm."""
    best = best_run(
        logs, lambda log: (str(log.config["problem"]["data"]), str(log.attrs["method"])), "final"
    )
    return by_data(best, ORDER)


def draw(logs: list[Log]) -> Any:
    """A column for each data set; over the bits sent both ways, and over the rounds."""
    found = runs(logs)
    names = data_sets(found)

    def fill(panel: Any, cost: Axis, data: str) -> None:
        for method in reversed(LOOKS):
            if (data, method) in found:
                panels.curve(panel, [found[data, method]], cost, NORM, *LOOKS[method])
        panels.dress(panel, cost, NORM, cost.label(logs[0]))

    return panels.matrix(
        (BITS, ROUNDS),
        names,
        fill,
        labels=[NORM.label(logs[0])] * 2,
        titles=names,
        entries=panels.entries_of({labels.method(method): look for method, look in LOOKS.items()}),
    )


def fig2(logs: list[Log]) -> Iterator[Claim]:
    """What Section 7.1 says of the four strategies."""
    yield from _best_and_same(logs, FIG2, BUDGETS, FINAL)
    found = runs(logs)
    stalls = [_stalls(found, data, method) for data in data_sets(found) for method in WORSE]
    yield state("error feedback and naive compression stall above CD-Adam", STOPS, FIG2, stalls)


def fig4(logs: list[Log]) -> Iterator[Claim]:
    """What Appendix E.1 says of the four strategies with Top-1."""
    yield from _best_and_same(logs, FIG4, TOP1, SIMILAR)
    found = runs(logs)
    ends = [_smallest(found, data, ROUNDS, WORSE) for data in data_sets(found)]
    text = "CD-Adam ends below error feedback and naive compression at equal rounds"
    yield state(text, BETTER, FIG4, ends)


def _best_and_same(logs: list[Log], source: str, best: str, same: str) -> Iterator[Claim]:
    found = runs(logs)
    rivals = [method for method in LOOKS if method != OWN]
    smallest = [_smallest(found, data, BITS, rivals) for data in data_sets(found)]
    yield state("CD-Adam has the smallest gradient norm at equal bits", best, source, smallest)
    text = "CD-Adam ends where uncompressed AMSGrad ends, at equal rounds"
    ends = [_where_plain_ends(found, data) for data in data_sets(found)]
    yield state(text, same, source, ends)


def _lacking(found: Found, data: str, methods: Iterable[str]) -> list[Evidence]:
    """Evidence that runs are missing; empty where all are there."""
    lacking = [labels.method(m) for m in (OWN, *methods) if (data, m) not in found]
    why = f"no complete run of {', '.join(lacking)}"
    return [Evidence(data, why, Verdict.UNDECIDED)] if lacking else []


def _smallest(found: Found, data: str, x: Axis, rivals: Iterable[str]) -> Evidence:
    """CD-Adam's gradient norm against the smallest other one, at the cost of its whole run."""
    for lacking in _lacking(found, data, rivals):
        return lacking
    own = {method: found[data, method] for method in (OWN, *rivals)}
    budget = float(x.values(own[OWN])[-1])
    norms = {method: value_at(log, NORM, x, budget) for method, log in own.items()}
    ratio = min(norms[method] for method in rivals) / norms[OWN]
    values = ", ".join(f"{labels.method(method)} {norm:.2g}" for method, norm in norms.items())
    steps = {method: float(log.attrs["stepsize"]) for method, log in own.items()}
    unit = "rounds" if x is ROUNDS else "bits a worker"
    return Evidence(
        data,
        f"{values}, with {number(budget)} {unit}",
        judge([ratio]),
        {"median": ratio, "budget": budget, "norms": norms, "steps": steps},
    )


def _where_plain_ends(found: Found, data: str) -> Evidence:
    """Not decided where CD-Adam still falls when it ends, above where AMSGrad is."""
    for lacking in _lacking(found, data, ("amsgrad",)):
        return lacking
    own, plain = (_at_end(found[data, method]) for method in (OWN, "amsgrad"))
    ratio = own / plain
    falls = Reach(found[data, OWN], ROUNDS, NORM).floor == 0
    verdict = decided(ratio <= SAME)
    if falls and ratio > SAME:
        verdict = Verdict.UNDECIDED
    measured = f"{own:.2g} and {plain:.2g}, {ratio:.2g} times (at most {SAME:g} holds)"
    measured += ", still falling" * (verdict is Verdict.UNDECIDED)
    return Evidence(data, measured, verdict, {"ratio": ratio, "falls": falls})


def _stalls(found: Found, data: str, method: str) -> Evidence:
    """Its norm hardly falls in the second half of the rounds, and stays above CD-Adam's."""
    for lacking in _lacking(found, data, (method,)):
        return lacking
    log = found[data, method]
    end = _at_end(log)
    gain = value_at(log, NORM, ROUNDS, float(ROUNDS.values(log)[-1]) / 2) / end
    above = end / _at_end(found[data, OWN])
    return Evidence(
        f"{data}, {labels.method(method)}",
        f"{gain:.3g} times smaller in the second half (below {STALL:g} holds),"
        f" ends at {above:.2g} times CD-Adam's norm",
        decided(gain < STALL and above > 1),
        {"gain": gain, "above": above},
    )


def _at_end(log: Log) -> float:
    return value_at(log, NORM, ROUNDS, float("inf"))
