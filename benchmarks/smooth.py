"""DIANA+ (quant+) on a9a, 8 workers: a round against bare gradients, matrix products and exchange.

Lower bound: the slower rank's bare gradients and its workers' products with L_i^{†1/2} and
L_i^{1/2}, the server's products with all L_i^{1/2}, one gather of as many bytes as a round has and
one broadcast of d values. Both are measured in turns, so that a change of the machine's speed
meets both. Without a9a the sample takes its place, and the row says so.
"""

from __future__ import annotations

import statistics
import sys

import numpy as np
from mpi4py import MPI

from benchmarks.common import Watch, result, seconds, write
from benchmarks.round import data_name
from mpisim.comm.clock import DECODE, ENCODE
from mpisim.compressors.mapped import products
from mpisim.runs.experiment import parse
from mpisim.runs.setup import Setup

ROUNDS, TURNS, WORKERS = 1000, 5, 8


def engine(comm: MPI.Intracomm, data: str, rounds: int) -> Setup:
    """The experiment, set up: the paper's, but for the rounds."""
    tables = {
        "problem": {
            "name": "logistic",
            "data": data,
            "workers": WORKERS,
            "split": "sorted-by-norm",
            "scale": "row-max-abs",
            "l2": 1e-3,
        },
        "method": {"name": "diana", "stepsize": "theory"},
        "compressor": {"name": "smooth", "inner": {"name": "quant-plus"}},
        "run": {"rounds": rounds, "log_every": ROUNDS},
    }
    return Setup(parse(tables), comm)


def lower_bound(comm: MPI.Intracomm, job: Setup) -> tuple[float, float, float]:
    """Seconds of the slower rank's gradients, of the slowest path's products, of the exchange."""
    star, problem, d = job.star, job.problem, job.problem.d
    x = np.full(d, 1e-3)
    v = problem.gradients(x)
    upload = star.compress(job.compressor, v)
    inner, which = upload.message.message, upload.message.form.which  # type: ignore[attr-defined]
    roots, inverses = upload.message.form.matrices, job.compressor._inverses  # type: ignore[attr-defined]
    gradients = comm.allreduce(seconds(lambda: problem.gradients(x), 50), MPI.MAX)
    levels, mine = inner.decoded(), np.arange(star.m)

    def own() -> None:
        products(inverses, mine, v)
        products(roots, which, levels)

    maps = comm.allreduce(seconds(own, 200), MPI.MAX)
    everyone = comm.gather(levels)
    if everyone is not None:
        all_levels, every = np.vstack(everyone), np.arange(star.n)
        maps += seconds(lambda: products(roots, every, all_levels), 200)
    sizes = star.all_workers(inner.encode().sizes)
    bounds = np.concatenate([[0], np.cumsum(sizes)])[star.starts]
    up = np.zeros(bounds[star.rank + 1] - bounds[star.rank], np.uint8)
    whole = [np.zeros(bounds[-1], np.uint8), np.diff(bounds), bounds[:-1], MPI.BYTE]
    down = np.zeros(4 * d, np.uint8)

    def exchange() -> None:
        comm.Gatherv(up, whole if comm.rank == 0 else None)
        comm.Bcast(down)

    comm.Barrier()
    return gradients, comm.bcast(maps), comm.allreduce(seconds(exchange, 500), MPI.MAX)


def rounds(comm: MPI.Intracomm, data: str) -> tuple[float, float]:
    """Elapsed seconds of a round, and those of encoding and decoding in it, on the server."""
    watch = Watch(engine(comm, data, ROUNDS))
    return watch.round_seconds(), watch.phase_seconds(ENCODE, DECODE)


def main(path: str) -> None:
    """Measure in turns, write the rows from rank 0."""
    comm = MPI.COMM_WORLD
    data = data_name()
    job = engine(comm, data, 1)
    measured = [(*lower_bound(comm, job), *rounds(comm, data)) for _ in range(TURNS)]
    if comm.rank > 0:
        return
    gradients, maps, exchange, elapsed, coding = (
        statistics.median(column) * 1e6 for column in zip(*measured, strict=True)
    )
    print(f"bare gradients {gradients:.1f} us, products {maps:.1f} us, exchange {exchange:.1f} us")
    setting = f"({data}, {WORKERS} workers, {comm.size} ranks)"
    bound = gradients + maps + exchange
    write(
        [
            result(f"DIANA+ quant+ round {setting}", elapsed, bound, "us", "<= 2"),
            result("its encoding and decoding / a round", coding, elapsed, "us", "<= 0.1"),
        ],
        path,
    )


if __name__ == "__main__":
    main(sys.argv[1])
