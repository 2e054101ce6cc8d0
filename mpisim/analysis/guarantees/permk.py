"""The PermK paper's tables as `mpisim theory` prints them."""

from __future__ import annotations

from math import isnan

from mpisim.analysis import text
from mpisim.theory import permk_tables
from mpisim.theory.complexity import Case
from mpisim.theory.permk_tables import LETTERS, Choice


def tables(case: Case) -> str:
    """Tables 1, 3 and 4 of the PermK paper, or, under PL, Tables 3 and 6."""
    if case.setting.condition == "nonconvex":
        return "\n\n".join([_constants(case), _rounds(case), _optimized(case, "4")])
    return f"{_rounds(case)}\n\n{_optimized(case, '6')}"


def _constants(case: Case) -> str:
    lines = [tuple(map(text.number, row)) for row in permk_tables.constants(case)]
    table = text.columns([("compressor", "A", "B", "source"), *lines], right=(1, 2))
    return f"PermK paper, Table 1\n{table}"


def _rounds(case: Case) -> str:
    head = ("method", "p", "K", "rounds", "bits/worker", "source")
    lines = [(*_cells(choice), source) for choice, source in permk_tables.table_3(case)]
    under = " under PL" if case.setting.condition == "PL" else ""
    table = text.columns([head, *lines], right=(1, 2, 3, 4))
    return f"PermK paper, Table 3{under}: K = ceil(d/n), p = zeta / d\n{table}"


def _optimized(case: Case, number: str) -> str:
    """For each method, a line with the lemma's parameters and one with the best."""
    lemma = f"Lemma {(13 if number == '4' else 15) + (case.setting.d < case.setting.n)}"
    head = ("method", "p", "K", "rounds", "bits/worker", "", "O(.) with constant 1")
    lines: list[tuple[str, ...]] = [head]
    for own, best, order in permk_tables.optimized(case):
        source = lemma
        if own.method == "groups":
            source = "(51)" if permk_tables.equation_51(case.setting) else "derived here"
        lines.append((*_cells(own), source, "-" if isnan(order) else f"{order:.3e}"))
        lines.append((*_cells(best), "best", ""))
    table = text.columns(lines, right=(1, 2, 3, 4, 6))
    return f"PermK paper, Table {number}: p and K for the fewest bits\n{table}"


def _cells(choice: Choice) -> tuple[str, str, str, str, str]:
    p = "-" if choice.method == "topk" else f"{choice.p:.4g}"
    k = "-" if choice.method in ("permk", "groups") else str(choice.k)
    return LETTERS[choice.method], p, k, f"{choice.rounds:.3e}", f"{choice.bits:.3e}"
