"""How long a round with a million weights takes a hundred clients of the US, and one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mpisim.analysis import panels, style
from mpisim.analysis.claims import Claim, Evidence, decided, state
from mpisim.analysis.fleet_rounds import rounds_of
from mpisim.analysis.fleet_seconds import seconds as seconds_of
from mpisim.comm.fleet import Fleet
from mpisim.runs.log.reader import Log

SOURCE = "an outside estimate: 507 s uncompressed, 28 s for one client, 16 s for a bit, 7 s for 1%"
DRAWS = {1: 10_000, 100: 400}  # by clients: the mean of one has a heavy tail
CLOSE = 0.1
Key = tuple[int, str]
# (clients, compressor): its name, the estimate, and the average of the draws that it is of.
ROUNDS: dict[Key, tuple[str, float, Callable[[np.ndarray], Any]]] = {
    (100, "identity"): ("uncompressed", 507.0, np.median),
    (1, "identity"): ("uncompressed, one client", 28.0, np.mean),
    (100, "scaled-sign"): ("a bit a coordinate", 16.0, np.median),
    (100, "topk"): ("TopK, 1%", 7.0, np.median),
}


def last_rounds(logs: Sequence[Log]) -> dict[Key, np.ndarray]:
    """Seconds of the last round on each fleet, (draws,): on the links, both ways, without work."""
    fleet, table = Fleet("mlab:US", seconds=0.0), {}
    for log in logs:
        rounds = rounds_of(log, fleet)
        links = dataclasses.replace(rounds, seconds=rounds.computing)  # no server's seconds
        drawn = [seconds_of(links, fleet, seed).seconds for seed in range(DRAWS[log.n])]
        table[log.n, str(log.config["compressor"]["name"])] = np.diff(drawn)[:, -1]
    return {key: table[key] for key in ROUNDS if key in table}


def draw(logs: Sequence[Log]) -> Any:
    """p5 to p95 and the average over fleets, and the estimate above it."""
    figure, grid = panels.grid(1, 1, (4.6, 1.8))
    panel, table = grid[0, 0], last_rounds(logs)
    for place, (key, seconds) in enumerate(table.items()):
        _, estimate, average = ROUNDS[key]
        low, high = np.percentile(seconds, (5, 95))
        panel.plot([low, high], [-place] * 2, color=style.COLOURS[0])
        panel.plot(average(seconds), -place, "o", color=style.COLOURS[0])
        panel.plot(estimate, 0.25 - place, "v", color=style.COLOURS[1], markersize=5)
    panel.set_yticks(-np.arange(len(table)), [ROUNDS[key][0] for key in table])
    panel.set_xscale("log")
    panel.set_xlabel("seconds of a round")
    entries = [("modelled, p5 to p95", style.COLOURS[0]), ("outside estimate", style.COLOURS[1])]
    panels.legend(figure, panels.colours_of(entries))
    return figure


def claims(logs: Sequence[Log]) -> Iterator[Claim]:
    """The estimate, line by line."""
    evidence = []
    for key, seconds in last_rounds(logs).items():
        name, estimate, average = ROUNDS[key]
        value = float(average(seconds))
        text = f"{value:.3g} s, estimated {estimate:g} s"
        good = decided(abs(value / estimate - 1) <= CLOSE)
        evidence.append(Evidence(name, text, good, {"seconds": value, "estimate": estimate}))
    yield state(f"a round takes what was estimated, within {CLOSE:.0%}", "", SOURCE, evidence)
