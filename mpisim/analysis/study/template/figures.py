"""STUDY: one line on what it shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mpisim.analysis import labels, panels, style
from mpisim.analysis.claims import Claim, compare, state
from mpisim.analysis.curves import Axis
from mpisim.analysis.study import Figure, Grid, best_runs
from mpisim.runs.log.reader import Log

COLOURS = {"marina": style.COLOURS[0], "diana": style.COLOURS[1]}
ROUNDS, BITS = Axis("round", log=False), Axis("bits_up", log=False)
GRADIENT = Axis("grad_norm_sq", log=True)


def by_method(logs: list[Log]) -> dict[str, list[Log]]:
    """{method: its runs with the best step of the grid, one for each seed}."""
    best: dict[str, list[Log]] = {name: [] for name in COLOURS}
    for steps in best_runs(logs):  # a setting: {step: runs}, the best step first
        runs = next(iter(steps.values()))
        best[runs[0].attrs["method"]] += runs
    return best


def draw(logs: list[Log]) -> Any:
    """|grad f(x^k)|^2 over rounds and over bits: the mean over the seeds, and a band."""

    def fill(panel: Any, y: Axis, x: Axis) -> None:
        for name, runs in by_method(logs).items():
            if runs:
                panels.curve(panel, runs, x, y, COLOURS[name], "-")
        panels.dress(panel, x, y, x.label(logs[0]))

    entries = [(labels.method(name), {"color": colour}) for name, colour in COLOURS.items()]
    return panels.matrix(
        [GRADIENT],
        [ROUNDS, BITS],
        fill,
        labels=[GRADIENT.label(logs[0])],
        titles=["rounds", "bits"],
        entries=entries,
    )


def claims(logs: list[Log]) -> Iterator[Claim]:
    """What the figure is meant to show, measured."""
    runs = by_method(logs)
    for x, unit in ((ROUNDS, "rounds"), (BITS, "bits")):
        evidence = compare("the sample", runs["marina"], runs["diana"], x)
        text = f"MARINA needs fewer {unit} than DIANA"
        yield state(text, "what the paper says", "where it says so", [evidence])


FIGURES = [
    Figure(
        "fig1",
        "MARINA against DIANA",
        Grid("fig1", {"quick": [], "paper": ["run.rounds=2000"]}),
        draw,
        claims,
    )
]
