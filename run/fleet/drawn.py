"""Seconds to 1e-4 by country, on drawn fleets of phones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mpisim.analysis import panels, style
from mpisim.analysis.claims import Claim, state
from mpisim.runs.log.reader import Log

from .times import COUNTRIES, SAMPLE, SOME, TITLES, ahead, name, times

SOURCE = "modelled seconds to 1e-4 of |grad f(x^0)|^2, on the same drawn fleets"


def draw(logs: Sequence[Log]) -> Any:
    """A panel for each problem: median seconds by country, and p5 to p95 over fleets."""
    figure, grid = panels.grid(1, len(SAMPLE), (3.4, 4.2))
    for panel, problem in zip(grid[0], SAMPLE, strict=True):
        for number, country in enumerate(COUNTRIES):
            methods = times(logs, problem, f"mlab:{country}")
            offset = 0.3 - 0.6 * number / (len(COUNTRIES) - 1)
            for place, one in enumerate(methods):
                values = [value for value in one.seconds.values() if np.isfinite(value)]
                if values:
                    low, middle, high = np.percentile(values, (5, 50, 95))
                    spread = [[middle - low], [high - middle]]
                    look = {"color": style.COLOURS[number], "fmt": "o", "markersize": 3}
                    panel.errorbar(middle, offset - place, xerr=spread, **look)
            if country == COUNTRIES[0]:
                panel.set_yticks(-np.arange(len(methods)), [name(one.method) for one in methods])
        panel.set_xscale("log")
        style.log_ticks(panel.xaxis, *panel.get_xlim())
        panel.set_xlabel("seconds to 1e-4")
        panel.set_title(TITLES[problem])
    entries = zip(COUNTRIES, style.COLOURS, strict=False)
    panels.legend(figure, panels.colours_of(entries), columns=len(COUNTRIES))
    return figure


def claims(logs: Sequence[Log]) -> Iterator[Claim]:
    """Each method against gradient descent, and the best against each other."""
    table = {
        (problem, country): {one.method: one for one in times(logs, problem, f"mlab:{country}")}
        for problem in SAMPLE
        for country in COUNTRIES
    }

    def claim(text: str, problem: str, less: str, more: str, word: str = "fewer") -> Claim:
        evidence = [
            ahead(country, table[problem, country][less], table[problem, country][more], word)
            for country in COUNTRIES
            if {less, more} <= table[problem, country].keys()
        ]
        return state(f"{TITLES[problem]}: {text}", "", SOURCE, evidence)

    for problem in SAMPLE:
        for method in list(table[problem, "US"])[1:]:
            yield claim(f"{name(method)} reaches 1e-4 before GD", problem, method, "gd")
    yield claim("Scaffnew reaches 1e-4 before DIANA", "a9a", "scaffnew", "diana")
    fastest = "FedAvg reaches 1e-4 before EF21 (two-way)"
    yield claim(fastest, "million", "fedavg", "ef21-2way")
    for problem in SAMPLE:
        text = "FedAvg with 30% of the clients reaches 1e-4 before FedAvg with all"
        yield claim(text, problem, SOME["fedavg"], "fedavg")
