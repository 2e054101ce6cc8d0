"""Seconds to 1e-4 where rounds end at a deadline, with all and with some of the clients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mpisim.analysis import panels, style
from mpisim.analysis.claims import Claim, Evidence, Verdict, of_seeds, state
from mpisim.analysis.study import Line, value_of
from mpisim.runs.log.reader import Log

from .times import COUNTRIES, simulated

SOURCE = "simulated seconds to 1e-4 of |grad f(x^0)|^2, on the same drawn fleets"
BLUE, ORANGE, GREEN, PINK, YELLOW = style.COLOURS[:5]
EVERY = Line("FedAvg", BLUE, {"method.name": "fedavg", "method.participants": None})
SOME = Line("FedAvg, 30 of 100", ORANGE, {"method.name": "fedavg", "method.participants": 30})
LINES = (
    EVERY,
    SOME,
    Line("DIANA", GREEN, {"method.name": "diana"}),
    Line("DASHA", PINK, {"method.name": "dasha"}),
    Line("PP-MARINA, 30 of 100", YELLOW, {"method.name": "pp-marina"}),
)
FREE = 10.0  # seconds: nobody is late
Table = dict[float, dict[int, float]]


def table(logs: Sequence[Log], line: Line, country: str) -> Table:
    """{deadline: {seed of the fleet: seconds}}; infinity where the target is not reached."""
    seconds: Table = {}
    for log in filter(line.has, logs):
        if log.config["fleet"]["links"] == f"mlab:{country}":
            of_limit = seconds.setdefault(float(log.config["fleet"]["deadline"]), {})
            of_limit[int(value_of(log, "fleet.seed") or 1)] = simulated(log)
    return dict(sorted(seconds.items()))


def draw(logs: Sequence[Log]) -> Any:
    """Median seconds over the deadline; a deadline with which a run ends at a floor has no dot."""
    figure, grid = panels.grid(1, len(COUNTRIES), (2.0, 2.4))
    for panel, country in zip(grid[0], COUNTRIES, strict=True):
        for line in LINES:
            drawn = {t: list(of.values()) for t, of in table(logs, line, country).items()}
            good = {t: np.median(of) for t, of in drawn.items() if np.isfinite(of).all()}
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


def claims(logs: Sequence[Log]) -> Iterator[Claim]:
    """What a deadline saves each method, and what it costs."""
    for line in LINES:
        tables = {country: table(logs, line, country) for country in COUNTRIES}
        for limit in (0.2, 0.1):
            evidence = [_faster(country, of[limit], of[FREE]) for country, of in tables.items()]
            yield state(f"{line.label}: a deadline of {limit:g} s saves time", "", SOURCE, evidence)
    evidence = [
        _faster(country, *(table(logs, line, country)[FREE] for line in (SOME, EVERY)))
        for country in COUNTRIES
    ]
    text = "FedAvg with 30 of 100 clients reaches 1e-4 before FedAvg with all"
    yield state(text, "", SOURCE, evidence)


def _faster(where: str, less: dict[int, float], more: dict[int, float]) -> Evidence:
    if not np.isfinite(list(less.values())).all():
        return Evidence(where, "ends at a floor above 1e-4", Verdict.FAILS)
    return of_seeds(where, [more[seed] / less[seed] for seed in sorted(less)], "fewer")
