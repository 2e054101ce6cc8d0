"""DIANA+ (quant+) on a9a, 8 workers: a round against bare gradients, matrix products and exchange.

Lower bound: the slower rank's bare gradients and its workers' products with L_i^{†1/2} and
L_i^{1/2}, the server's products with all L_i^{1/2}, one gather of a round's bytes and one broadcast
of d values. Measurements alternate, so that a change of the machine's speed affects both. Without
a9a the sample replaces it, and the row says so.
"""

from __future__ import annotations

import sys

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
from mpisim.comm.clock import DECODE, ENCODE
from mpisim.compressors.smooth import products
from mpisim.runs.experiment import parse
from mpisim.runs.setup import Setup

ROUNDS, WORKERS = 1000, 8


def engine(comm: MPI.Intracomm, data: str, rounds: int) -> Setup:
    """The paper's experiment, except for the rounds, set up."""
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
    inner, which = upload.message.inner, upload.message.form.which  # type: ignore[attr-defined]
    roots, inverses = upload.message.form.matrices, job.compressor._inverses  # type: ignore[attr-defined]
    gradients = comm.allreduce(seconds(lambda: problem.gradients(x), 50), MPI.MAX)
    levels, mine = inner.decoded(), np.arange(star.m)

    def fast() -> None:
        products(inverses, mine, v)
        products(roots, which, levels)

    maps = comm.allreduce(seconds(fast, 200), MPI.MAX)
    everyone = comm.gather(levels)
    if everyone is not None:
        all_levels, every = np.vstack(everyone), np.arange(star.n)
        maps += seconds(lambda: products(roots, every, all_levels), 200)
    sizes = star.all_workers(inner.encode().sizes)
    return gradients, comm.bcast(maps), bare_exchange(star, sizes, d)


def rounds(comm: MPI.Intracomm, data: str) -> tuple[float, float]:
    """Wall seconds of a round, and those of its encoding and decoding, on the server."""
    watch = Watch(engine(comm, data, ROUNDS))
    return watch.round_seconds(), watch.phase_seconds(ENCODE, DECODE)


def main(path: str) -> None:
    """Measure in turns, write the rows from rank 0."""
    comm, data = MPI.COMM_WORLD, data_name()
    job = engine(comm, data, 1)
    measured = [(*lower_bound(comm, job), *rounds(comm, data)) for _ in range(TURNS)]
    if comm.rank > 0:
        return
    gradients, maps, exchange, elapsed, coding = medians(measured)
    print(f"bare gradients {gradients:.1f} us, products {maps:.1f} us, exchange {exchange:.1f} us")
    setting = f"({data}, {WORKERS} workers, {comm.size} ranks)"
    bound = gradients + maps + exchange
    rows = [
        result(f"DIANA+ quant+ round {setting}", elapsed, bound, "us", "<= 2"),
        result("its encoding and decoding / a round", coding, elapsed, "us", "<= 0.1"),
    ]
    write(rows, path)


if __name__ == "__main__":
    main(sys.argv[1])
