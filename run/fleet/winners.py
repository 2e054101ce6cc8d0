"""Which method is there first, as a map of the links' bandwidth and their spread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mpisim.analysis import panels, style
from mpisim.analysis.claims import Claim, Evidence, decided, state
from mpisim.runs.log.reader import Log

from .drawn import SOURCE, TITLES
from .times import METHODS, SAMPLE, SIGMA, UP, Times, name, times


def cells(logs: Sequence[Log], problem: str) -> dict[tuple[str, float], list[Times]]:
    """{(rates, sigma): the methods that get there, the fastest first}."""
    table = {}
    for up in UP:
        for sigma in SIGMA:
            there = [t for t in times(logs, problem, f"{up},20ms", sigma) if np.isfinite(t.median)]
            table[up, sigma] = sorted(there, key=lambda one: one.median)
    return table


def draw(logs: Sequence[Log]) -> Any:
    """The winner of each cell, its seconds, and how much later the second is."""
    figure, grid = panels.grid(1, len(SAMPLE), (4.2, 3.0))
    colours = dict(zip(METHODS, (*style.COLOURS[:7], style.GREY, "#b0d060"), strict=True))
    won = []
    for panel, problem in zip(grid[0], SAMPLE, strict=True):
        for (up, sigma), (first, second, *_) in cells(logs, problem).items():
            x, y = UP.index(up), SIGMA.index(sigma)
            box = {"color": colours[first.method], "alpha": 0.45, "linewidth": 0}
            panel.fill_between([x - 0.5, x + 0.5], y - 0.5, y + 0.5, **box)
            names = [name(one.method).removesuffix(" SGD") for one in (first, second)]
            text = f"{names[0]}\n{_time(first.median)}\n{names[1]}"
            text += f" × {second.median / first.median:.2f}"
            panel.text(x, y, text, ha="center", va="center", fontsize=6)
            won.append(first.method)
        panel.set_xticks(range(len(UP)), [rate(up) for up in UP])
        panel.set_yticks(range(len(SIGMA)), [f"{sigma:g}" for sigma in SIGMA])
        panel.set_xlim(-0.5, len(UP) - 0.5)
        panel.set_ylim(-0.5, len(SIGMA) - 0.5)
        panel.grid(visible=False)
        panel.set_xlabel("median upload, down is five times that")
        panel.set_title(TITLES[problem])
    grid[0, 0].set_ylabel("sigma of the links' logarithms")
    entries = [(name(m), colours[m]) for m in METHODS if m in won]
    panels.legend(figure, panels.colours_of(entries))
    return figure


def rate(links: str) -> str:
    """The upload of ``links``, as "30 kbit/s" for "30kbit/150kbit"."""
    up = links.partition("/")[0]
    return f"{up.replace('kbit', ' kbit').replace('mbit', ' Mbit')}/s"


def _time(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds < 3600 else f"{seconds / 3600:.3g} h"


def claims(logs: Sequence[Log]) -> Iterator[Claim]:
    """What wins with many weights, and what with few."""
    for problem, methods, text in (
        ("million", ("ef21-2way",), "compression both ways is first on all links"),
        ("a9a", ("fedavg", "scaffnew"), "local steps are first on all links"),
    ):
        evidence = [
            Evidence(
                f"{up}, sigma {sigma:g}",
                f"{name(first.method)}, {first.median:.3g} s",
                decided(first.method in methods),
                {one.method: one.median for one in (first, *rest)},
            )
            for (up, sigma), (first, *rest) in cells(logs, problem).items()
        ]
        yield state(f"{TITLES[problem]}: {text}", "", SOURCE, evidence)
