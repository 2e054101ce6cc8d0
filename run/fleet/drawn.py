"""Seconds to 1e-4 by country, on drawn fleets of phones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mpisim.analysis import panels, style
from mpisim.analysis.claims import Claim, Evidence, Verdict, of_seeds, state
from mpisim.runs.log.reader import Log

from .times import COUNTRIES, SAMPLE, Times, name, times

SOURCE = "modelled seconds to 1e-4 of |grad f(x^0)|^2, on the same drawn fleets"
TITLES = {"a9a": "a9a: 123 weights, 100 clients", "million": "a million weights, 10 clients"}


def draw(logs: Sequence[Log]) -> Any:
    """A panel for each problem: median seconds by country, and p5 to p95 over fleets."""
    figure, grid = panels.grid(1, len(SAMPLE), (3.4, 3.4))
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


def ahead(where: str, less: Times, more: Times, word: str = "fewer") -> Evidence:
    """Whether ``less`` takes less time than ``more`` on the fleets that both have."""
    both = sorted(less.seconds.keys() & more.seconds.keys())
    pairs = [(less.seconds[j], more.seconds[j]) for j in both]
    if any(np.isinf(a) for a, _ in pairs):
        return Evidence(where, f"{name(less.method)} does not get there", Verdict.FAILS)
    text = f"{less.median:.3g} s and {more.median:.3g} s"
    evidence = of_seeds(where, [b / a for a, b in pairs], word, text=text)
    if less.edge or more.edge:
        return Evidence(where, f"{evidence.measured}, at an edge of the steps", Verdict.UNDECIDED)
    return evidence


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
            yield claim(f"{name(method)} is there before GD", problem, method, "gd")
    yield claim("Scaffnew is there before DIANA", "a9a", "scaffnew", "diana")
    yield claim("EF21 (two-way) is there before Scaffnew", "million", "ef21-2way", "scaffnew")
