"""Which method reaches the target first: by bandwidth and spread, by country and deadline."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from mpisim.analysis import panels, style
from mpisim.analysis.claims import Claim, Evidence, Verdict, state
from mpisim.analysis.claims.verdicts import WORST
from mpisim.runs.log.reader import Log

from .drawn import SOURCE
from .times import COUNTRIES, METHODS, SAMPLE, SOME, TITLES, Times, ahead, name, rivals, times

UP = ("30kbit/150kbit", "300kbit/1500kbit", "3mbit/15mbit", "30mbit/150mbit")
SIGMA = (0.0, 0.5, 1.0, 1.5)
DEADLINES = {"a9a": (None, 0.2, 0.1, 0.05), "million": (None, 300.0, 100.0, 30.0)}
Cells = Mapping[tuple[str, str], list[Times]]  # (x, y): the methods that get there, fastest first
COLOURS = dict(
    zip(METHODS, (*style.COLOURS[:7], "#b0d060", "#7f4f24", "#9d4edd", style.GREY), strict=True)
)
LOCAL = ("fedavg", "scaffnew", SOME["fedavg"])
NO_RUNS = {"a9a": (), "million": ("shadowheart",)}  # that runs anew on each fleet
UNDECIDED = "hatched: not decided against the method below"


def _fastest_first(problem: str, methods: Sequence[Times]) -> list[Times]:
    there = (t for t in methods if t.reached and t.method not in NO_RUNS[problem])
    return sorted(there, key=lambda one: one.median)


def links_of(logs: Sequence[Log], problem: str) -> Cells:
    """By median upload and by spread of the links."""
    return {
        (rate(up), f"{sigma:g}"): _fastest_first(problem, times(logs, problem, f"{up},20ms", sigma))
        for up in UP
        for sigma in SIGMA
    }


def countries_of(logs: Sequence[Log], problem: str) -> Cells:
    """By deadline and by country."""
    return {
        (limit_text(t), c): _fastest_first(problem, times(logs, problem, f"mlab:{c}", deadline=t))
        for t in DEADLINES[problem]
        for c in COUNTRIES
    }


def limit_text(limit: float | None) -> str:
    """A deadline."""
    return "none" if limit is None else f"{limit:g} s"


def rate(links: str) -> str:
    """The upload of ``links``, as "30 kbit/s" for "30kbit/150kbit"."""
    up = links.partition("/")[0]
    return f"{up.replace('kbit', ' kbit').replace('mbit', ' Mbit')}/s"


def draw_links(logs: Sequence[Log]) -> Any:
    """The map of links."""
    tables = {problem: links_of(logs, problem) for problem in SAMPLE}
    figure, grid = _draw(tables, "median upload, down is five times that")
    grid[0, 0].set_ylabel("sigma of the links' logarithms")
    return figure


def draw_countries(logs: Sequence[Log]) -> Any:
    """The map of countries and deadlines."""
    tables = {problem: countries_of(logs, problem) for problem in SAMPLE}
    return _draw(tables, "deadline of a round")[0]


def _draw(tables: Mapping[str, Cells], along: str) -> tuple[Any, Any]:
    """The winner of each cell, its seconds, and how much later the next one is.

    Where a rival is not decided against, the next one is that rival, and the cell is hatched.
    """
    figure, grid = panels.grid(1, len(tables), (4.6, 3.2))
    won = []
    for panel, (problem, cells) in zip(grid[0], tables.items(), strict=True):
        xs, ys = (list(dict.fromkeys(key[i] for key in cells)) for i in range(2))
        for (column, line), (first, *others) in cells.items():
            x, y = xs.index(column), ys.index(line)
            close = rivals(first, others)
            second = (close or others)[0]
            hatch = "////" if close else ""
            box = {"facecolor": COLOURS[first.method], "edgecolor": "white", "alpha": 0.4}
            panel.fill_between([x - 0.5, x + 0.5], y - 0.5, y + 0.5, hatch=hatch, **box)
            text = f"{short(first.method)}\n{seconds_text(first.median)}\n"
            text += f"{short(second.method)} × {second.median / first.median:.2f}"
            if first.left_out:
                text += f"\n{100 * first.left_out:.0f}% left out"
            panel.text(x, y, text, ha="center", va="center", fontsize=6)
            won.append(first.method)
        panel.set_xticks(range(len(xs)), xs)
        panel.set_yticks(range(len(ys)), ys)
        panel.set_xlim(-0.5, len(xs) - 0.5)
        panel.set_ylim(-0.5, len(ys) - 0.5)
        panel.grid(visible=False)
        panel.set_xlabel(along)
        panel.set_title(TITLES[problem])
    entries = [(name(m), COLOURS[m]) for m in METHODS if m in won]
    panels.legend(figure, panels.colours_of(entries))
    style.remark(figure, UNDECIDED)
    return figure, grid


def short(method: str) -> str:
    """In a cell."""
    return name(method).removesuffix(" SGD")


def seconds_text(seconds: float) -> str:
    """Seconds or hours."""
    if seconds >= 3600:
        return f"{seconds / 3600:.3g} h"
    return f"{seconds:.0f} s" if seconds >= 1000 else f"{seconds:.3g} s"


def first_of(where: str, methods: Sequence[Times], family: Collection[str]) -> Evidence:
    """Whether the fastest of a family is ahead of every method that is not of it."""
    best = next((one for one in methods if one.method in family), None)
    if best is None:
        return Evidence(where, "none of them gets there", Verdict.FAILS)
    others = [ahead("", best, one) for one in methods if one.method not in family]
    verdict = min((one.verdict for one in others), key=WORST.index)
    next_ = next(one for one in methods if one.method not in family)
    text = f"{name(best.method)}, {best.median:.3g} s; {name(next_.method)}, {next_.median:.3g} s"
    return Evidence(where, text, verdict, {one.method: one.median for one in methods})


def claim_links(logs: Sequence[Log]) -> Iterator[Claim]:
    """What wins with few weights, and what with many, and how many cells are decided."""
    for problem in SAMPLE:
        yield from _claims(problem, links_of(logs, problem), "on all links")


def claim_countries(logs: Sequence[Log]) -> Iterator[Claim]:
    """The same by country and deadline, and whether deadlines pay if nothing is missed."""
    for problem in SAMPLE:
        cells = countries_of(logs, problem)
        yield from _claims(problem, cells, "in all countries, with all deadlines")
        limit = limit_text(DEADLINES[problem][2])
        evidence = [ahead(c, cells[limit, c][0], cells["none", c][0]) for c in COUNTRIES]
        text = f"a deadline of {limit} saves time, if what it leaves out is not missed"
        yield state(f"{TITLES[problem]}: {text}", "", SOURCE, evidence)


def _claims(problem: str, cells: Cells, where: str) -> Iterator[Claim]:
    of_cells = {f"{x}, {y}": methods for (x, y), methods in cells.items()}
    evidence = [first_of(cell, methods, LOCAL) for cell, methods in of_cells.items()]
    text = f"a method with local steps reaches 1e-4 first {where}"
    yield state(f"{TITLES[problem]}: {text}", "", SOURCE, evidence)
    evidence = []
    for cell, (first, *others) in of_cells.items():
        close = ", ".join(name(one.method) for one in rivals(first, others))
        shown = f"{name(first.method)}, {first.median:.3g} s" + f"; or {close}" * bool(close)
        evidence.append(Evidence(cell, shown, Verdict.UNDECIDED if close else Verdict.HOLDS))
    text = f"which method is first is decided {where}"
    yield state(f"{TITLES[problem]}: {text}", "", SOURCE, evidence)
