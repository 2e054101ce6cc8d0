"""Timing and results."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np
from mpi4py import MPI

from mpisim.runs.cache import ProblemCache
from mpisim.runs.experiment import parse
from mpisim.runs.loop import run_rounds
from mpisim.runs.record import Output
from mpisim.runs.setup import Setup
from mpisim.runs.signals import StopSignals


def seconds(function: Callable[[], object], repeats: int) -> float:
    """Median seconds of one call over ``repeats`` calls, after one that is not counted.

    Medians, here and below: what interrupts a machine now and then is in neither side of a ratio.
    """
    function()
    times = [perf_counter()]
    for _ in range(repeats):
        function()
        times.append(perf_counter())
    return float(np.median(np.diff(times)))


class Watch:
    """Runs an experiment and keeps, on its server, when each round ended.

    Attributes
    ----------
    times : list of float
        Seconds on the wall.
    phases : list of list of float
        The rank's clock, as `mpisim.comm.clock.Clock.seconds`.
    """

    def __init__(self, job: Setup, output: Output | None = None):
        self.times: list[float] = []
        self.phases: list[list[float]] = []
        ledger, clock = job.star.ledger, job.clock
        end_round = ledger.end_round

        def end() -> None:
            end_round()
            self.times.append(perf_counter())
            self.phases.append(list(clock.seconds))

        ledger.end_round = end  # type: ignore[method-assign]
        job.star.comm.Barrier()
        with StopSignals() as signals:
            run_rounds(job, output or Output(None), signals)

    def round_seconds(self) -> float:
        """Median elapsed seconds of a round after the first; 0 on other ranks than the server."""
        return float(np.median(np.diff(self.times))) if self.times else 0.0

    def phase_seconds(self, *phases: int) -> float:
        """Median seconds of these phases together in a round after the first; 0 likewise."""
        spent = [sum(seconds[phase] for phase in phases) for seconds in self.phases]
        return float(np.median(np.diff(spent))) if spent else 0.0


def after_the_first(tables: dict, loaded: ProblemCache | None = None) -> float:
    """Elapsed seconds of a round after the first of an experiment, on this rank alone."""
    ends_only = tables["run"] | {"log_every": tables["run"]["rounds"]}
    job = Setup(parse(tables | {"run": ends_only}), MPI.COMM_SELF, loaded)
    return Watch(job).round_seconds()


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
