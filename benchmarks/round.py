"""MARINA + RandK-10 on a9a, 5 workers: a round against the bare gradient plus the bare exchange.

Lower bound: the slower rank's bare gradients of its workers, plus one gather of the same message
bytes and one broadcast of d values through MPI. Measurements alternate, so that a change of the
machine's speed affects both. Without a9a the sample replaces it, and the row says so.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np
from mpi4py import MPI

from benchmarks.common import (
    TURNS,
    Watch,
    bare_exchange,
    data_name,
    medians,
    result,
    seconds,
    write,
)
from mpisim.comm.clock import PHASES
from mpisim.runs.experiment import parse
from mpisim.runs.log.schema import columns
from mpisim.runs.log.writer import LogWriter
from mpisim.runs.record import Output
from mpisim.runs.setup import Setup

ROUNDS, K = 1000, 10


def engine(comm: MPI.Intracomm, data: str, rounds: int) -> Setup:
    """The experiment, set up."""
    tables = {
        "problem": {"name": "nonconvex-loss", "data": data, "workers": 5, "bias": True},
        "method": {"name": "marina", "stepsize": 1.0},
        "compressor": {"name": "randk", "k": K},
        "run": {"rounds": rounds, "seed": 1},
    }
    return Setup(parse(tables), comm)


def lower_bound(comm: MPI.Intracomm, engine: Setup) -> tuple[float, float]:
    """Seconds of the slower rank's bare gradients, and of the bare exchange."""
    problem = engine.problem
    x = np.full(problem.d, 1e-3)
    gradients = comm.allreduce(seconds(lambda: problem.gradients(x), 50), MPI.MAX)
    return gradients, bare_exchange(engine.star, np.full(problem.n, 4 * K), problem.d)


def rounds(comm: MPI.Intracomm, data: str, log: Path) -> tuple[float, float]:
    """Wall and logged seconds of a round, with every round logged; medians, on the server."""
    watch = Watch(engine(comm, data, ROUNDS), Output(log, force=True, quiet=True))
    if comm.rank > 0:
        return 0.0, 0.0
    with h5py.File(log) as file:
        logged = sum(file["rounds"][f"time_{phase}"][()] for phase in PHASES)
    return watch.round_seconds(), float(np.median(np.diff(logged[1:])))


def logging(folder: Path) -> float:
    """Seconds to log one row, including flushes."""
    schema = columns(False)
    log = LogWriter(folder / "bench.h5", {}, schema)
    values = {name: number for number, (name, *_) in enumerate(schema)}

    def block() -> None:
        for _ in range(1000):
            log.row(values)
        log.flush()

    return seconds(block, 10) / 1000


def main(path: str) -> None:
    """Measure in turns, write the rows from rank 0."""
    comm, data = MPI.COMM_WORLD, data_name()
    job = engine(comm, data, 1)
    measured: list[tuple[float, ...]] = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(TURNS):
            measured.append((*lower_bound(comm, job), *rounds(comm, data, Path(folder) / "log.h5")))
        row_seconds = logging(Path(folder)) if comm.rank == 0 else 0.0
    if comm.rank > 0:
        return
    gradients, exchange, elapsed, logged = medians(measured)
    bound = gradients + exchange
    print(f"bare gradients {gradients:.1f} us, bare exchange {exchange:.1f} us")
    setting = f"({data}, 5 workers, {comm.size} ranks)"
    what = f"MARINA + RandK-10 round, logged time {setting}"
    evaluated = f"the same, elapsed time, every round evaluated {setting}"
    rows = [
        result(what, logged, bound, "us", "<= 1.5"),
        result(evaluated, elapsed, bound, "us", "<= 1.5"),
        result("logging a row / a round", row_seconds * 1e6, elapsed, "us", "<= 0.02"),
    ]
    write(rows, path)


if __name__ == "__main__":
    main(sys.argv[1])
