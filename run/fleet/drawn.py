"""Seconds to 1e-4 on drawn fleets of phones: by country, and where rounds end at a deadline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mpisim.analysis import panels, style
from mpisim.analysis.claims import Claim, state
from mpisim.analysis.study import Line
from mpisim.runs.labels import by_key
from mpisim.runs.log.reader import Log

from .times import COUNTRIES, SAMPLE, SOME, TITLES, Times, ahead, name, simulated, times

SOURCE = "modelled seconds to 1e-4 of |grad f(x^0)|^2, on the same drawn fleets"
SIMULATED = "simulated seconds to 1e-4 of |grad f(x^0)|^2, on the same drawn fleets"
BLUE, ORANGE, GREEN, PINK, YELLOW = style.COLOURS[:5]
EVERY = Line("FedAvg", BLUE, {"method.name": "fedavg", "method.participants": None})
THIRTY = Line("FedAvg, 30 of 100", ORANGE, {"method.name": "fedavg", "method.participants": 30})
LINES = (
    EVERY,
    THIRTY,
    Line("DIANA", GREEN, {"method.name": "diana"}),
    Line("DASHA", PINK, {"method.name": "dasha"}),
    Line("PP-MARINA, 30 of 100", YELLOW, {"method.name": "pp-marina"}),
)
FREE = 10.0  # seconds: nobody is late
Table = dict[float, Times]


def draw(logs: Sequence[Log]) -> Any:
    """A panel for each problem: median seconds by country, and p5 to p95 over fleets."""
    figure, grid = panels.grid(1, len(SAMPLE), (3.4, 4.2))
    for panel, problem in zip(grid[0], SAMPLE, strict=True):
        for number, country in enumerate(COUNTRIES):
            methods = times(logs, problem, f"mlab:{country}")
            offset = 0.3 - 0.6 * number / (len(COUNTRIES) - 1)
            for place, one in enumerate(methods):
                if one.reached:
                    low, middle, high = np.percentile(list(one.seconds.values()), (5, 50, 95))
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

    def claim(text: str, problem: str, less: str, more: str) -> Claim:
        each = ((country, table[problem, country]) for country in COUNTRIES)
        both = ((country, of) for country, of in each if {less, more} <= of.keys())
        evidence = [ahead(country, of[less], of[more]) for country, of in both]
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


def table(logs: Sequence[Log], line: Line, country: str) -> Table:
    """{deadline: seconds on each fleet}, the shortest first; no fleet where nothing ran."""
    here = [log for log in logs if log.config["fleet"]["links"] == f"mlab:{country}"]
    limits = by_key(filter(line.has, here), lambda log: float(log.config["fleet"]["deadline"]))
    ran = {limit: simulated(line.label, limits[limit]) for limit in sorted(limits)}
    return defaultdict(lambda: Times(line.label, {}, 1), ran)


def draw_deadlines(logs: Sequence[Log]) -> Any:
    """Median seconds over the deadline; no dot where a run ends above the target."""
    figure, grid = panels.grid(1, len(COUNTRIES), (2.0, 2.4))
    for panel, country in zip(grid[0], COUNTRIES, strict=True):
        for line in LINES:
            drawn = table(logs, line, country)
            good = {limit: one.median for limit, one in drawn.items() if one.reached}
            panel.plot(list(good), list(good.values()), "o-", color=line.colour)
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.set_title(country)
    low, high = zip(*(panel.get_ylim() for panel in grid[0]), strict=True)
    for panel in grid[0]:
        panel.set_ylim(min(low), max(high))
    grid[0, 0].set_ylabel("seconds to 1e-4")
    style.remark(figure, f"deadline of a round, seconds ({FREE:g}: none is late)")
    panels.legend(figure, panels.colours_of([(line.label, line.colour) for line in LINES]))
    return figure


def claim_deadlines(logs: Sequence[Log]) -> Iterator[Claim]:
    """What a deadline saves each method, and what it costs."""
    for line in LINES:
        tables = {country: table(logs, line, country) for country in COUNTRIES}
        for limit in (0.2, 0.1):
            evidence = [ahead(country, of[limit], of[FREE]) for country, of in tables.items()]
            text = f"{line.label}: a deadline of {limit:g} s saves time"
            yield state(text, "", SIMULATED, evidence)
    evidence = [
        ahead(country, *(table(logs, line, country)[FREE] for line in (THIRTY, EVERY)))
        for country in COUNTRIES
    ]
    text = "where nobody is late, FedAvg with 30 of 100 clients reaches 1e-4 before FedAvg with all"
    yield state(text, "", SIMULATED, evidence)
