"""Figures 2 and 4: AMSGrad with four ways of compressing, logistic regression."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mpisim.analysis import labels, panels, style
from mpisim.analysis.claims import Claim, missing, number
from mpisim.analysis.curves import ROUNDS, Axis, Named
from mpisim.analysis.study import best_run, by_data, data_sets
from mpisim.runs.log.reader import Log

from .equal_cost import BITS, name, value_at

SOURCE = "CD-Adam, Section 7.1 and Figure 2 (Appendix E.1, Figure 4)"
ORDER = ("phishing", "mushrooms", "a9a", "w8a")
LOOKS: dict[str, tuple[str, Any]] = {
    "cd-adam": (style.COLOURS[0], "-"),
    "amsgrad": (style.COLOURS[1], (0, (4, 1.5))),
    "ef-amsgrad": (style.COLOURS[2], (0, (1, 1.2))),
    "naive-amsgrad": (style.COLOURS[3], (0, (5, 1.5, 1, 1.5))),
}
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


def claims(logs: list[Log]) -> Iterator[Claim]:
    """What Section 7.1 says of the four strategies, on each data set."""
    found = runs(logs)
    for data in data_sets(found):
        lacking = [labels.method(method) for method in LOOKS if (data, method) not in found]
        if lacking:
            text = f"{data}: the four strategies compared"
            yield missing(text, SOURCE, f"no complete run of {', '.join(lacking)}")
            continue
        own = {method: found[data, method] for method in LOOKS}
        yield _at_equal_bits(data, own)
        yield _at_equal_rounds(data, own["cd-adam"], own["amsgrad"])
        for method in ("ef-amsgrad", "naive-amsgrad"):
            yield _stalls(data, own[method], own["cd-adam"])


def _at_equal_bits(data: str, own: dict[str, Log]) -> Claim:
    budget = float(BITS.values(own["cd-adam"])[-1])
    norms = {method: value_at(log, NORM, BITS, budget) for method, log in own.items()}
    values = ", ".join(f"{labels.method(method)} {norm:.2g}" for method, norm in norms.items())
    steps = {method: float(log.attrs["stepsize"]) for method, log in own.items()}
    return Claim(
        f"{data}: CD-Adam reaches the smallest gradient norm at equal bits",
        SOURCE,
        f"{values}, with {number(budget)} bits a worker",
        min(norms, key=lambda method: norms[method]) == "cd-adam",
        {"bits_per_worker": budget, "norms": norms, "steps": steps},
    )


def _at_equal_rounds(data: str, cd_adam: Log, amsgrad: Log) -> Claim:
    last, plain = NORM.values(cd_adam)[-1], NORM.values(amsgrad)[-1]
    ratio = float(last / plain)
    text = f"{data}: CD-Adam ends where uncompressed AMSGrad ends, at equal rounds"
    measured = f"{last:.2g} and {plain:.2g}, {ratio:.2g} times (at most {SAME:g} holds)"
    return Claim(text, SOURCE, measured, ratio <= SAME, {"ratio": ratio})


def _stalls(data: str, log: Log, cd_adam: Log) -> Claim:
    values = NORM.values(log)
    gain = float(values[: len(values) // 2].min() / values.min())
    above = float(values[-1] / NORM.values(cd_adam)[-1])
    return Claim(
        f"{data}: {name(log)} stalls, above CD-Adam",
        SOURCE,
        f"{gain:.3g} times smaller in the second half (below {STALL:g} holds),"
        f" ends at {above:.2g} times CD-Adam's norm",
        gain < STALL and above > 1,
        {"gain": gain, "above": above},
    )
