"""Timing and results."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from mpi4py import MPI

from mpisim.comm.star import Star
from mpisim.core.errors import InputError
from mpisim.problems.data.find import find
from mpisim.runs.experiment import parse
from mpisim.runs.loop import run_rounds
from mpisim.runs.record import Output
from mpisim.runs.setup import ProblemCache, Setup
from mpisim.runs.stop import StopSignals

TURNS = 5


def seconds(function: Callable[[], object], repeats: int) -> float:
    """Median seconds of one call over ``repeats`` calls, after one that is not counted.

    Medians, here and below, exclude occasional interruptions from both sides of a ratio.
    """
    function()
    times = [perf_counter()]
    for _ in range(repeats):
        function()
        times.append(perf_counter())
    return float(np.median(np.diff(times)))


def medians(rows: Sequence[Sequence[float]]) -> list[float]:
    """The median of each column, in seconds, in microseconds."""
    return [statistics.median(column) * 1e6 for column in zip(*rows, strict=True)]


def turns(*measures: Callable[[], float]) -> list[float]:
    """The median of each over alternating turns, in microseconds."""
    return medians([[measure() for measure in measures] for _ in range(TURNS)])


def data_name() -> str:
    """a9a, or the sample if a9a is not available."""
    try:
        find("a9a")
        return "a9a"
    except InputError:
        return "sample"


def bare_exchange(star: Star, sizes: np.ndarray, d: int) -> float:
    """Seconds of one gather of messages of ``sizes`` (n,) bytes and a broadcast of d float32."""
    comm, bounds = star.comm, np.concatenate([[0], np.cumsum(sizes)])[star.starts]
    up = np.zeros(bounds[star.rank + 1] - bounds[star.rank], np.uint8)
    received = [np.zeros(bounds[-1], np.uint8), np.diff(bounds), bounds[:-1], MPI.BYTE]
    down = np.zeros(4 * d, np.uint8)

    def exchange() -> None:
        comm.Gatherv(up, received if comm.rank == 0 else None)
        comm.Bcast(down)

    comm.Barrier()
    return comm.allreduce(seconds(exchange, 500), MPI.MAX)


class Watch:
    """Runs an experiment and records, on its server, when each round ended.

    times, cpu : wall and CPU seconds at the end of each round
    phases : the rank's `mpisim.comm.clock.Clock.seconds` then
    """

    def __init__(self, job: Setup, output: Output | None = None):
        self.times: list[float] = []
        self.cpu: list[float] = []
        self.phases: list[list[float]] = []
        ledger, clock = job.star.ledger, job.clock
        end_round = ledger.end_round

        def end() -> None:
            end_round()
            self.times.append(perf_counter())
            self.cpu.append(process_time())
            self.phases.append(list(clock.seconds))

        ledger.end_round = end  # type: ignore[method-assign]
        job.star.comm.Barrier()
        with StopSignals() as signals:
            run_rounds(job, output or Output(None, quiet=True), signals)

    def round_seconds(self) -> float:
        """Median wall seconds of a round after the first; 0 on ranks other than the server."""
        return float(np.median(np.diff(self.times))) if self.times else 0.0

    def phase_seconds(self, *phases: int) -> float:
        """Median seconds of these phases in sum, likewise."""
        spent = [sum(seconds[phase] for phase in phases) for seconds in self.phases]
        return float(np.median(np.diff(spent))) if spent else 0.0


def later_round_seconds(tables: dict, loaded: ProblemCache | None = None) -> float:
    """Wall seconds of an experiment's round after the first, on this rank alone."""
    ends_only = tables["run"] | {"log_every": tables["run"]["rounds"]}
    job = Setup(parse(tables | {"run": ends_only}), MPI.COMM_SELF, loaded)
    return Watch(job).round_seconds()


def result(
    what: str, measured: float, against: float, unit: str, bound: str = "", inverse: bool = False
) -> dict:
    """A row of the table; with ``inverse`` the ratio is the speed-up over ``against``."""
    ratio = against / measured if inverse else measured / against
    row = {"what": what, "measured": measured, "against": against, "unit": unit}
    return row | {"ratio": ratio, "bound": bound}


def write(rows: list[dict], path: str) -> None:
    """Write the rows for `benchmarks.__main__`."""
    Path(path).write_text(json.dumps(rows))
