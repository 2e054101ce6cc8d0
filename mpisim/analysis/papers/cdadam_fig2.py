"""CD-Adam, Figures 2 and 4: AMSGrad with four ways of compressing, logistic regression."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from mpisim.analysis import labels as words
from mpisim.analysis import panels, style
from mpisim.analysis.claims import Claim, number
from mpisim.analysis.curves import Axis
from mpisim.analysis.tune import best
from mpisim.runs.log.reader import Log

SCALES: dict[str, list[str]] = {
    "quick": [],
    "paper": ["run.rounds=10000"],
}
SOURCE = "CD-Adam, Section 7.1 and Figure 2 (Appendix E.1, Figure 4)"
ORDER = ("phishing", "mushrooms", "a9a", "w8a")
METHODS = ("cd-adam", "amsgrad", "ef-amsgrad", "naive-amsgrad")
LOOKS: dict[str, tuple[str, Any]] = {
    "cd-adam": (style.COLOURS[0], "-"),
    "amsgrad": (style.COLOURS[1], (0, (4, 1.5))),
    "ef-amsgrad": (style.COLOURS[2], (0, (1, 1.2))),
    "naive-amsgrad": (style.COLOURS[3], (0, (5, 1.5, 1, 1.5))),
}
SAME = 3.0  # two gradient norms are "roughly the same" within this factor
STALL = 2.0  # a method stalls that gains less than this factor in the second half of its rounds


@dataclasses.dataclass(frozen=True)
class Norm(Axis):
    """|grad f(x^k)|, as the paper draws it."""

    def values(self, log: Log) -> np.ndarray:
        return np.sqrt(log.column("grad_norm_sq"))

    def label(self, log: Log) -> str:
        return "gradient norm"


ROUNDS, BITS = Axis("round", log=False), Axis("bits_total", log=True)
NORM = Norm("grad_norm_sq", log=True)

Runs = dict[tuple[str, str], Log]


def runs(logs: list[Log]) -> Runs:
    """{(data, method): the run with the best step}: the smallest last gradient norm."""
    by_path = {log.path: log for log in logs}
    found: Runs = {}
    for choice in best(list(by_path), "final"):
        if choice.best is not None:
            log = next(log for path, log in by_path.items() if str(path) in choice.best.logs)
            found[str(log.config["problem"]["data"]), str(log.attrs["method"])] = log
    place = {name: i for i, name in enumerate(ORDER)}
    return {key: found[key] for key in sorted(found, key=lambda k: (place.get(k[0], 99), k))}


def draw(logs: list[Log]) -> Any:
    """A column for each data set; over the bits sent both ways, and over the rounds."""
    found = runs(logs)
    names = list(dict.fromkeys(data for data, _ in found))
    with panels.styled():
        figure, grid = panels.grid(2, len(names))
        for row, cost in zip(grid, (BITS, ROUNDS), strict=True):
            for panel, name in zip(row, names, strict=True):
                for method in reversed(METHODS):
                    if (name, method) in found:
                        panels.curve(panel, [found[name, method]], cost, NORM, *LOOKS[method])
                panels.dress(panel, cost, NORM, cost.label(logs[0]))
            row[0].set_ylabel(NORM.label(logs[0]))
        for panel, name in zip(grid[0], names, strict=True):
            panel.set_title(name)
        panels.legend(figure, [_entry(method) for method in METHODS])
    return figure


def _entry(method: str) -> tuple[str, dict[str, Any]]:
    colour, dash = LOOKS[method]
    return words.method(method), {"color": colour, "linestyle": dash}


def claims(logs: list[Log]) -> list[Claim]:
    """What Section 7.1 says of the four strategies, on each data set."""
    found = runs(logs)
    names = list(dict.fromkeys(data for data, _ in found))
    return [claim for name in names for claim in _claims(name, found)]


def _claims(name: str, found: Runs) -> Iterator[Claim]:
    if any((name, method) not in found for method in METHODS):
        missing = [words.method(m) for m in METHODS if (name, m) not in found]
        text = f"{name}: the four strategies compared"
        yield Claim(text, SOURCE, f"not measured: no complete run of {', '.join(missing)}", False)
        return
    own = {method: found[name, method] for method in METHODS}
    yield _at_equal_bits(name, own)
    yield _at_equal_rounds(name, own["cd-adam"], own["amsgrad"])
    for method in ("ef-amsgrad", "naive-amsgrad"):
        yield _stalls(name, own[method], own["cd-adam"])


def _at_equal_bits(name: str, own: dict[str, Log]) -> Claim:
    budget = BITS.values(own["cd-adam"])[-1]
    norms = {method: _norm_at(log, budget) for method, log in own.items()}
    values = ", ".join(f"{words.method(method)} {norm:.2g}" for method, norm in norms.items())
    details = {"bits_per_worker": float(budget), "norms": norms, "steps": _steps(own)}
    return Claim(
        f"{name}: CD-Adam reaches the smallest gradient norm at equal bits",
        SOURCE,
        f"{values}, with {number(float(budget))} bits a worker",
        min(norms, key=lambda method: norms[method]) == "cd-adam",
        details,
    )


def _norm_at(log: Log, budget: float) -> float:
    """The last gradient norm before the budget of bits is spent."""
    within = np.flatnonzero(BITS.values(log) <= budget)
    return float(NORM.values(log)[within[-1]])


def _steps(own: dict[str, Log]) -> dict[str, float]:
    return {method: float(log.attrs["stepsize"]) for method, log in own.items()}


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
        f"{name}: {words.method(str(log.attrs['method']))} stalls, above CD-Adam",
        SOURCE,
        f"{gain:.3g} times smaller in the second half (below {STALL:g} holds),"
        f" ends at {above:.2g} times CD-Adam's norm",
        gain < STALL and above > 1,
        {"gain": gain, "above": above},
    )
