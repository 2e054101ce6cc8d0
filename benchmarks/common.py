"""Timing and results."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from mpi4py import MPI

from mpisim.config import parse
from mpisim.engine import Engine, Output
from mpisim.loaded import Loaded
from mpisim.signals import StopSignals


def seconds(function: Callable[[], object], repeats: int) -> float:
    """Mean seconds of one call over ``repeats`` calls, after one that is not counted."""
    function()
    start = perf_counter()
    for _ in range(repeats):
        function()
    return (perf_counter() - start) / repeats


def after_the_first(tables: dict, loaded: Loaded | None = None) -> float:
    """Elapsed seconds of a round after the first of an experiment, on this rank alone."""
    rounds, elapsed = tables["run"]["rounds"], []
    for number in (1, rounds):
        changed = tables | {"run": tables["run"] | {"rounds": number, "log_every": rounds}}
        job = Engine(parse(changed), MPI.COMM_SELF, loaded)
        with StopSignals() as signals:
            start = perf_counter()
            job.run(Output(None), signals)
            elapsed.append(perf_counter() - start)
    return (elapsed[1] - elapsed[0]) / (rounds - 1)


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
