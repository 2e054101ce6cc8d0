"""The table that benchmarks end with, and what it says of their bounds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.against import interval

ENOUGH = 6  # runs for a 95% interval of the median: from the least to the largest


def verdict(ratios: Sequence[float], bound: str) -> str:
    """ "ok", "MISSED", or "cannot tell" where the interval of the ``ratios`` contains the bound.

    bound : "<= 1.5" or ">= 60"; without one there is no verdict. Fewer than `ENOUGH` runs miss
    nothing, as noise alone may have done it.
    """
    if not bound:
        return ""
    sign, limit = (-1, -float(bound[3:])) if bound.startswith("<=") else (1, float(bound[3:]))
    low, high = sorted(sign * end for end in interval(np.log(ratios))[1:])
    if low >= limit:
        return "ok"
    return "MISSED" if high < limit and len(ratios) >= ENOUGH else "cannot tell"


def show(runs: dict[str, list[dict]]) -> None:
    """Print the rows of all runs, by what they measure: the last seconds, and all ratios."""
    width = max(58, *map(len, runs))
    print(f"\n{'what':{width}} {'measured':>12} {'against':>12} {'ratio':>22} runs {'bound':>9}")
    for what, rows in runs.items():
        row, ratios = rows[-1], [row["ratio"] for row in rows]
        measured, against = (f"{row[key]:.4g} {row['unit']}" for key in ("measured", "against"))
        middle, *ends = (f"{ratio:.4g}" for ratio in interval(np.log(ratios)))
        ratio, bound = middle + f" [{', '.join(ends)}]" * (len(rows) > 1), row["bound"]
        print(
            f"{what:{width}} {measured:>12} {against:>12} {ratio:>22} {len(rows):4} {bound:>9}"
            f" {verdict(ratios, bound)}"
        )
