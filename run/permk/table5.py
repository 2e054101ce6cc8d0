"""Table 5: (L_+^t)^2 / (L_±^t)^2 along MARINA with PermK on the autoencoder."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from math import log2
from statistics import geometric_mean
from typing import Any

import numpy as np

from mpisim.analysis import panels, style
from mpisim.analysis.claims.comparing import seed
from mpisim.analysis.claims.judging import fewest, of_seeds
from mpisim.analysis.claims.verdicts import Claim, Evidence, number, state, undecided
from mpisim.analysis.curves import LOSS, ROUNDS, Axis
from mpisim.analysis.study import best_steps, quotes
from mpisim.runs.log.reader import Log

FEATURES = 784
SOURCE = "PermK paper, A.8.2 and Table 5"
QUOTES = quotes(__file__)["table5"]
PAPER = {  # homogeneity: {t: ratio}
    0.9: {10: 104.73, 300: 9.96, 600: 5.69, 900: 3.61},
    0.0: {10: 18.83, 300: 2.31, 600: 1.69, 900: 1.30},
}
NAMES = {0.9: "homogeneous", 0.0: "heterogeneous"}
APART = 1.22  # how many times higher than the one below the name of a line is at least
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
Ratios = dict[int, dict[int, float]]  # {row: {seed: ratio}}


def ratios(logs: list[Log]) -> dict[float, dict[float, Ratios]]:
    """{homogeneity: {step: ratios}}, the best step of each first: the least last f."""
    longest = max(int(log.config["run"]["rounds"]) for log in logs)
    groups: dict[float, dict[float, Ratios]] = {}
    for best in best_steps(logs, ROUNDS, LOSS, ()):  # no targets: by the last f
        config = best.logs[0].config
        if int(config["run"]["rounds"]) == longest:
            group = groups.setdefault(float(config["problem"]["homogeneity"]), {})
            group |= {step: _of_step(logs, runs[0]) for step, runs in best.steps.items()}
    return dict(sorted(groups.items(), reverse=True))


def _of_step(logs: list[Log], long: Log) -> Ratios:
    """All rows of the runs with this step and homogeneity, however long."""
    rows: Ratios = {}
    for log in logs:
        same = log.config["problem"] == long.config["problem"]
        if same and log.config["method"] == long.config["method"]:
            for k, value in zip(ROUNDS.values(log), RATIO.values(log), strict=True):
                if np.isfinite(value):
                    rows.setdefault(int(k), {})[seed(log)] = float(value)
    return dict(sorted(rows.items()))


def mean(values: Ratios, t: int) -> float:
    """Over the seeds."""
    return float(np.mean(list(values[t].values())))


def draw(logs: list[Log]) -> Any:
    """The ratio over the rounds: the best step, the others thinner, and the paper's table.

    Each line has its step at the end, above the others' where they meet. The best one has the range
    of its seeds.
    """
    groups = ratios(logs)
    figure, ((panel,),) = panels.grid(1, 1, (5.2, 3.4))
    names: list[tuple[float, str, str]] = []
    for p, steps in groups.items():
        colour, table = COLOURS.get(p, "black"), PAPER.get(p, {})
        for place, (step, group) in reversed(list(enumerate(steps.items()))):
            look = {"linewidth": 2.0} if place == 0 else {"linewidth": 0.8, "alpha": 0.5}
            values = [mean(group, k) for k in group]
            panel.plot(list(group), values, color=colour, **look)
            if place == 0:
                low, high = ([end(v.values()) for v in group.values()] for end in (min, max))
                panel.fill_between(list(group), low, high, color=colour, alpha=0.15)
            power = round(log2(step * FEATURES))
            names.append((values[-1], f"  $2^{{{power}}} / {FEATURES}$", colour))
        panel.plot(list(table), list(table.values()), "o", color=colour)
    panels.dress(panel, ROUNDS, RATIO, "t", RATIO.label(logs[0]))
    last, height = max(max(group) for steps in groups.values() for group in steps.values()), 0.0
    for value, text, colour in sorted(names):
        height = max(value, APART * height)
        panel.text(last, height, text, color=colour, fontsize=7, va="center")
    looks = {rf"$\hat p$ = {p:g}": (COLOURS.get(p, "black"), "-") for p in groups}
    dots = {"color": "black", "marker": "o", "linestyle": ""}
    panels.legend(figure, [*panels.entries_of(looks), ("Table 5", dots)])
    return figure


def claims(logs: list[Log]) -> Iterator[Claim]:
    """Both ratios are larger at the start, and the homogeneous one is the larger and about 10."""
    groups = {p: next(iter(steps.values())) for p, steps in ratios(logs).items()}
    if set(PAPER) - set(groups):
        text = "the ratio in the homogeneous and in the heterogeneous case"
        yield undecided(text, QUOTES["about_ten"], SOURCE, "a complete run is missing")
        return
    least = fewest(logs)
    falls = [_falls(p, groups[p], least) for p in PAPER]
    yield state("the ratio is much larger at the start", QUOTES["falls"], SOURCE, falls)
    larger = [_larger(t, groups[0.9], groups[0.0], least) for t in PAPER[0.9]]
    yield state("the ratio is larger in the homogeneous case", QUOTES["smaller"], SOURCE, larger)
    means = [geometric_mean([groups[0.9][t][seed] for t in PAPER[0.9]]) for seed in groups[0.9][10]]
    one = of_seeds(NAMES[0.9], [mean / 10 for mean in means], "around", least, "of 10")
    text = "(L_±^t)^2 is about 10 times smaller on average"
    yield state(text, QUOTES["about_ten"], SOURCE, [one])


def _falls(p: float, values: Ratios, least: int) -> Evidence:
    table = PAPER[p]
    first, last = min(table), max(table)
    falls = [values[first][seed] / values[last][seed] for seed in values[first]]
    where = f"{NAMES[p]} (p = {p:g})"
    shown = (f"t = {t}: {number(mean(values, t))} (paper {table[t]:g})" for t in table)
    text = f"at t = {first} over t = {last}; {', '.join(shown)}"
    return of_seeds(where, falls, "much", least, text)


def _larger(t: int, high: Ratios, low: Ratios, least: int) -> Evidence:
    values = [high[t][seed] / low[t][seed] for seed in high[t] if seed in low[t]]
    text = f"{number(mean(high, t))} over {number(mean(low, t))}"
    return of_seeds(f"t = {t}", values, "fewer", least, text)
