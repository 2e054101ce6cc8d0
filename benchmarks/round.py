"""MARINA + RandK-10 on a9a, 5 workers: a round against the bare gradient plus the bare exchange.

Lower bound: the slower rank's bare gradients of its workers, plus one gather of the same message
bytes and one broadcast of d values through MPI. Both are measured in turns, so that a change of
the machine's speed meets both. Without a9a the sample takes its place, and the row says so.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np
from mpi4py import MPI

from benchmarks.common import Watch, result, seconds, write
from mpisim.comm.clock import PHASES
from mpisim.core.errors import InputError
from mpisim.problems.data.find import find
from mpisim.runs.experiment import parse
from mpisim.runs.log.schema import columns
from mpisim.runs.log.writer import LogWriter
from mpisim.runs.record import Output
from mpisim.runs.setup import Setup

ROUNDS, TURNS, K = 1000, 5, 10


def data_name() -> str:
    """a9a, or the sample where a9a is not to be had."""
    try:
        find("a9a")
        return "a9a"
    except InputError:
        return "sample"


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
    return gradients, bare_exchange(comm, engine)


def bare_exchange(comm: MPI.Intracomm, engine: Setup) -> float:
    """Seconds of one gather of RandK-10 messages and one broadcast of d float32 values."""
    star, d = engine.star, engine.problem.d
    up = np.zeros(4 * K * star.m, np.uint8)
    counts = 4 * K * np.diff(star.starts)
    everything = [np.zeros(4 * K * star.n, np.uint8), counts, 4 * K * star.starts[:-1], MPI.BYTE]
    down = np.zeros(4 * d, np.uint8)

    def exchange() -> None:
        comm.Gatherv(up, everything if comm.rank == 0 else None)
        comm.Bcast(down)

    comm.Barrier()
    return comm.allreduce(seconds(exchange, 500), MPI.MAX)


def rounds(comm: MPI.Intracomm, data: str, log: Path) -> tuple[float, float]:
    """Elapsed and logged seconds of a round, every round logged; medians, on the server."""
    watch = Watch(engine(comm, data, ROUNDS), Output(log, force=True))
    if comm.rank > 0:
        return 0.0, 0.0
    with h5py.File(log) as file:
        logged = sum(file["rounds"][f"time_{phase}"][()] for phase in PHASES)
    return watch.round_seconds(), float(np.median(np.diff(logged[1:])))


def logging(folder: Path) -> float:
    """Seconds of logging one row, flushes included."""
    schema = columns(False)
    log = LogWriter.create(folder / "bench.h5", {}, schema, True)
    values = tuple(range(len(schema)))

    def block() -> None:
        for _ in range(1000):
            log.row(values)
        log.flush()

    return seconds(block, 10) / 1000


def main(path: str) -> None:
    """Measure in turns, write the rows from rank 0."""
    comm = MPI.COMM_WORLD
    data = data_name()
    job = engine(comm, data, 1)
    measured: list[tuple[float, ...]] = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(TURNS):
            measured.append((*lower_bound(comm, job), *rounds(comm, data, Path(folder) / "log.h5")))
        row_seconds = logging(Path(folder)) if comm.rank == 0 else 0.0
    if comm.rank > 0:
        return
    gradients, exchange, elapsed, logged = (
        statistics.median(column) * 1e6 for column in zip(*measured, strict=True)
    )
    bound = gradients + exchange
    print(f"bare gradients {gradients:.1f} us, bare exchange {exchange:.1f} us")
    setting = f"({data}, 5 workers, {comm.size} ranks)"
    write(
        [
            result(
                f"MARINA + RandK-10 round, logged time {setting}", logged, bound, "us", "<= 1.5"
            ),
            result(
                f"the same, elapsed time, every round evaluated {setting}",
                elapsed,
                bound,
                "us",
                "<= 1.5",
            ),
            result("logging a row / a round", row_seconds * 1e6, elapsed, "us", "<= 0.02"),
        ],
        path,
    )


if __name__ == "__main__":
    main(sys.argv[1])
