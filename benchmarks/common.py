"""Timing and results."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from time import perf_counter


def seconds(function: Callable[[], object], repeats: int) -> float:
    """Mean seconds of one call over ``repeats`` calls, after one that is not counted."""
    function()
    start = perf_counter()
    for _ in range(repeats):
        function()
    return (perf_counter() - start) / repeats


def result(
    what: str, measured: float, against: float, unit: str, bound: str = "", inverse: bool = False
) -> dict:
    """A row of the table; ``inverse``: a rate, how many times faster than ``against``."""
    ratio = against / measured if inverse else measured / against
    return {
        "what": what,
        "measured": measured,
        "against": against,
        "unit": unit,
        "ratio": ratio,
        "bound": bound,
    }


def write(rows: list[dict], path: str) -> None:
    """Hand the rows to `benchmarks.__main__`."""
    Path(path).write_text(json.dumps(rows))
