"""Seconds to 1e-4 where rounds end at a deadline, with all and with some of the clients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mpisim.analysis import panels, style
from mpisim.analysis.claims import Claim, Evidence, Verdict, of_seeds, state
from mpisim.analysis.study import Line, value_of
from mpisim.runs.log.reader import Log

from .times import row

SOURCE = "simulated seconds to 1e-4 of |grad f(x^0)|^2, on the same drawn fleets of the US"
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


def table(logs: Sequence[Log], line: Line) -> dict[float, dict[int, float]]:
    """{deadline: {seed of the fleet: seconds}}; infinity where the target is not reached."""
    seconds: dict[float, dict[int, float]] = {}
    for log in filter(line.has, logs):
        at, seed = row(log), int(value_of(log, "fleet.seed") or 1)
        taken = float("inf") if at is None else float(log.columns["simulated_seconds"][at])
        seconds.setdefault(float(log.config["fleet"]["deadline"]), {})[seed] = taken
    return dict(sorted(seconds.items()))


def draw(logs: Sequence[Log]) -> Any:
    """Median seconds over the deadline; a deadline with which a run ends at a floor has no dot."""
    figure, grid = panels.grid(1, 1, (5.0, 3.0))
    panel = grid[0, 0]
    for line in LINES:
        drawn = {limit: list(values.values()) for limit, values in table(logs, line).items()}
        good = {
            limit: np.median(values) for limit, values in drawn.items() if np.isfinite(values).all()
        }
        panel.plot(list(good), list(good.values()), "o-", color=line.colour)
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlabel("deadline of a round, seconds (10: none is late)")
    panel.set_ylabel("seconds to 1e-4")
    panels.legend(figure, panels.colours_of([(line.label, line.colour) for line in LINES]))
    return figure


def claims(logs: Sequence[Log]) -> Iterator[Claim]:
    """What a deadline saves, and what it costs."""
    tables = {line.label: table(logs, line) for line in LINES}
    for limit, text in ((0.2, "a deadline of 0.2 s saves time"), (0.1, "one of 0.1 s does")):
        evidence = []
        for label, of_line in tables.items():
            late, free = of_line[limit], of_line[max(of_line)]
            if not np.isfinite(list(late.values())).all():
                evidence.append(Evidence(label, "ends at a floor above 1e-4", Verdict.FAILS))
                continue
            ratios = [free[seed] / late[seed] for seed in sorted(late)]
            evidence.append(of_seeds(label, ratios, "fewer"))
        yield state(text, "", SOURCE, evidence)
    some, every = tables[SOME.label], tables[EVERY.label]
    ratios = [every[max(every)][seed] / some[max(some)][seed] for seed in every[max(every)]]
    fewer = of_seeds("", ratios, "fewer")
    yield state(
        "FedAvg with 30 of 100 clients is there before FedAvg with all", "", SOURCE, [fewer]
    )
