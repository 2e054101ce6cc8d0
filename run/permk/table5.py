"""Table 5: (L_+^t)^2 / (L_±^t)^2 along MARINA with PermK on the autoencoder."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from mpisim.analysis import panels, style
from mpisim.analysis.claims import (
    Claim,
    Evidence,
    Verdict,
    decided,
    growing,
    number,
    state,
    undecided,
)
from mpisim.analysis.curves import LOSS, ROUNDS, Axis
from mpisim.analysis.study import best_steps
from mpisim.runs.log.reader import Log

SOURCE = "PermK paper, A.8.2 and Table 5"
ABOUT_TEN = (
    "in the homogeneous case, (L_±^t)^2 is about 10x times smaller than (L_+^t)^2 (on average)"
)
FALLS = "(L_+^t)^2 is much larger at the start of the process"
SMALLER = "in the heterogeneous case, the difference is smaller"
PAPER = {  # homogeneity: {t: ratio}
    0.9: {10: 104.73, 300: 9.96, 600: 5.69, 900: 3.61},
    0.0: {10: 18.83, 300: 2.31, 600: 1.69, 900: 1.30},
}
ABOUT = 3.0  # "about 10 times" is within this factor of 10
NAMES = {0.9: "homogeneous", 0.0: "heterogeneous"}
COLOURS = {0.9: style.COLOURS[2], 0.0: style.COLOURS[1]}


@dataclasses.dataclass(frozen=True)
class Ratio(Axis):
    """(L_+^t)^2 / (L_±^t)^2."""

    def values(self, log: Log) -> np.ndarray:
        with np.errstate(invalid="ignore", divide="ignore"):
            return log.column("adaptive_L_plus_sq") / log.column("adaptive_L_pm_sq")

    def label(self, log: Log) -> str:
        return r"$(L_+^t)^2 / (L_\pm^t)^2$"


RATIO = Ratio("ratio", log=True)
Ratios = dict[int, float]


def ratios(logs: list[Log]) -> dict[float, dict[float, Ratios]]:
    """{homogeneity: {step: {k: ratio in row k}}}, the best step of each first: the least last f."""
    longest = max(int(log.config["run"]["rounds"]) for log in logs)
    found: dict[float, dict[float, Ratios]] = {}
    for best in best_steps(logs, ROUNDS, LOSS, ()):  # no targets: by the last f
        config = best.logs[0].config
        if int(config["run"]["rounds"]) == longest:
            own = found.setdefault(float(config["problem"]["homogeneity"]), {})
            own |= {step: _of_step(logs, runs[0]) for step, runs in best.steps.items()}
    return dict(sorted(found.items(), reverse=True))


def _of_step(logs: list[Log], long: Log) -> Ratios:
    """All rows of the runs with this step and homogeneity, however long: the mean of the seeds."""
    rows: dict[int, list[float]] = {}
    for log in logs:
        same = log.config["problem"] == long.config["problem"]
        if same and log.config["method"] == long.config["method"]:
            for k, value in zip(ROUNDS.values(log), RATIO.values(log), strict=True):
                rows.setdefault(int(k), []).append(float(value))
    means = {k: float(np.mean(values)) for k, values in sorted(rows.items())}
    return {k: mean for k, mean in means.items() if np.isfinite(mean)}


def draw(logs: list[Log]) -> Any:
    """The ratio over the rounds: the best step, the others thinner, and the paper's table."""
    found = ratios(logs)
    figure, ((panel,),) = panels.grid(1, 1, (5.2, 3.4))
    for p, steps in found.items():
        colour, table = COLOURS.get(p, "black"), PAPER.get(p, {})
        for place, (step, own) in reversed(list(enumerate(steps.items()))):
            look = {"linewidth": 2.0} if place == 0 else {"linewidth": 0.8, "alpha": 0.5}
            label = f"{p:g}: {step:.3g}"
            panel.plot(list(own), list(own.values()), color=colour, label=label, **look)
        panel.plot(list(table), list(table.values()), "o", color=colour)
    panels.dress(panel, ROUNDS, RATIO, "t", RATIO.label(logs[0]))
    entries = panels.entries_of(
        {rf"$\hat p$ = {p:g}": (COLOURS.get(p, "black"), "-") for p in found}
    )
    dots = {"color": "black", "marker": "o", "linestyle": ""}
    panels.legend(figure, [*entries, ("Table 5", dots)])
    return figure


def claims(logs: list[Log]) -> Iterator[Claim]:
    """Both ratios fall along the run, and the homogeneous one is the larger and about 10."""
    found = {p: next(iter(steps.values())) for p, steps in ratios(logs).items()}
    if set(PAPER) - set(found):
        text = "the ratio in the homogeneous and in the heterogeneous case"
        yield undecided(text, ABOUT_TEN, SOURCE, "a complete run is missing")
        return
    at = {p: {t: found[p].get(t, float("nan")) for t in table} for p, table in PAPER.items()}
    yield state("the ratio falls along the run", FALLS, SOURCE, [_falls(p, at[p]) for p in at])
    larger = [_larger(t, high, at[0.0][t]) for t, high in at[0.9].items()]
    yield state("the ratio is larger in the homogeneous case", SMALLER, SOURCE, larger)
    mean = float(np.exp(np.mean(np.log(list(at[0.9].values())))))
    measured = f"{number(mean)} times (within a factor {ABOUT:g} of 10 holds)"
    verdict = decided(10 / ABOUT <= mean <= 10 * ABOUT) if mean > 0 else Verdict.UNDECIDED
    one = Evidence(NAMES[0.9], measured, verdict, {"mean": mean})
    yield state("(L_±^t)^2 is about 10 times smaller on average", ABOUT_TEN, SOURCE, [one])


def _falls(p: float, values: Ratios) -> Evidence:
    shown = (f"t = {t}: {number(v)} (paper {PAPER[p][t]:g})" for t, v in values.items())
    where = f"{NAMES[p]} (p = {p:g})"
    return Evidence(where, ", ".join(shown), growing([*values.values()][::-1]), {"ratios": values})


def _larger(t: int, high: float, low: float) -> Evidence:
    numbers = {"homogeneous": high, "heterogeneous": low}
    return Evidence(f"t = {t}", f"{number(high)} and {number(low)}", growing([low, high]), numbers)
