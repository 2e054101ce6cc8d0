"""Figures 2 and 4: AMSGrad with four ways of compressing, logistic regression."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mpisim.analysis import labels, panels, style
from mpisim.analysis.claims import Claim, number
from mpisim.analysis.curves import Axis, Named
from mpisim.analysis.study import best_runs, by_data, data_sets
from mpisim.runs.log.reader import Log

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

ROUNDS, BITS = Axis("round", log=False), Axis("bits_total", log=True)
NORM = Named("grad_norm_sq", log=True, text="gradient norm", of=np.sqrt)

Found = dict[tuple, Log]  # {(data, method): run}


def runs(logs: list[Log]) -> Found:
    """{(data, method): the run with the best step}: the smallest last gradient norm."""
    found: Found = {}
    for steps in best_runs(logs, "final"):
        log = next(iter(steps.values()))[0]
        found[str(log.config["problem"]["data"]), str(log.attrs["method"])] = log
    return by_data(found, ORDER)


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
        entries=panels.entries_of({labels.method(name): look for name, look in LOOKS.items()}),
    )


def claims(logs: list[Log]) -> Iterator[Claim]:
    """What Section 7.1 says of the four strategies, on each data set."""
    found = runs(logs)
    for name in data_sets(found):
        yield from _claims(name, found)


def _claims(name: str, found: Found) -> Iterator[Claim]:
    missing = [labels.method(method) for method in LOOKS if (name, method) not in found]
    if missing:
        text = f"{name}: the four strategies compared"
        yield Claim(text, SOURCE, f"not measured: no complete run of {', '.join(missing)}", False)
        return
    own = {method: found[name, method] for method in LOOKS}
    yield _at_equal_bits(name, own)
    yield _at_equal_rounds(name, own["cd-adam"], own["amsgrad"])
    for method in ("ef-amsgrad", "naive-amsgrad"):
        yield _stalls(name, own[method], own["cd-adam"])


def _at_equal_bits(name: str, own: dict[str, Log]) -> Claim:
    budget = float(BITS.values(own["cd-adam"])[-1])
    norms = {method: _norm_at(log, budget) for method, log in own.items()}
    values = ", ".join(f"{labels.method(method)} {norm:.2g}" for method, norm in norms.items())
    steps = {method: float(log.attrs["stepsize"]) for method, log in own.items()}
    return Claim(
        f"{name}: CD-Adam reaches the smallest gradient norm at equal bits",
        SOURCE,
        f"{values}, with {number(budget)} bits a worker",
        min(norms, key=lambda method: norms[method]) == "cd-adam",
        {"bits_per_worker": budget, "norms": norms, "steps": steps},
    )


def _norm_at(log: Log, budget: float) -> float:
    """The last gradient norm before the budget of bits is spent."""
    within = np.flatnonzero(BITS.values(log) <= budget)
    return float(NORM.values(log)[within[-1]])


def _at_equal_rounds(name: str, cd_adam: Log, amsgrad: Log) -> Claim:
    last, plain = NORM.values(cd_adam)[-1], NORM.values(amsgrad)[-1]
    ratio = float(last / plain)
    return Claim(
        f"{name}: CD-Adam ends where uncompressed AMSGrad ends, at equal rounds",
        SOURCE,
        f"{last:.2g} and {plain:.2g}, {ratio:.2g} times (at most {SAME:g} holds)",
        ratio <= SAME,
        {"ratio": ratio},
    )


def _stalls(name: str, log: Log, cd_adam: Log) -> Claim:
    values = NORM.values(log)
    gain = float(values[: len(values) // 2].min() / values.min())
    above = float(values[-1] / NORM.values(cd_adam)[-1])
    return Claim(
        f"{name}: {labels.method(str(log.attrs['method']))} stalls, above CD-Adam",
        SOURCE,
        f"{gain:.3g} times smaller in the second half (below {STALL:g} holds),"
        f" ends at {above:.2g} times CD-Adam's norm",
        gain < STALL and above > 1,
        {"gain": gain, "above": above},
    )
