"""VR-MARINA + RandK-10 on a9a, 5 workers, 66 rows each: a round against its bare arithmetic.

Lower bound: the slower rank's two bare minibatch gradients, plus one gather of the same message
bytes and one broadcast of d values through MPI. (The round reads the rows once for both points, so
it may take less time than two gradients.) p is so small that no round has full gradients, and only
the first and last rows are logged.
"""

from __future__ import annotations

import sys

import numpy as np
from mpi4py import MPI

from benchmarks.common import Watch, bare_exchange, data_name, result, seconds, turns, write
from mpisim.runs.experiment import parse
from mpisim.runs.setup import Setup

ROUNDS, BATCH, K = 2000, 66, 10


def engine(comm: MPI.Intracomm, data: str) -> Setup:
    """The experiment, set up."""
    tables = {
        "problem": {"name": "nonconvex-loss", "data": data, "workers": 5, "bias": True},
        "method": {"name": "vr-marina", "stepsize": 0.1, "batch": BATCH, "p": 1e-12},
        "compressor": {"name": "randk", "k": K},
        "run": {"rounds": ROUNDS, "seed": 1, "log_every": ROUNDS},
    }
    return Setup(parse(tables), comm)


def bare_batches(comm: MPI.Intracomm, job: Setup) -> float:
    """Seconds of the slower rank's minibatch gradients at two points."""
    problem = job.problem
    x, y = np.full(problem.d, 1e-3), np.full(problem.d, 2e-3)
    batch = job.star.draw("batch").batches(problem.rows, BATCH)

    def both() -> None:
        problem.batch_gradients(x, batch)
        problem.batch_gradients(y, batch)

    return comm.allreduce(seconds(both, 1000), MPI.MAX)


def main(path: str) -> None:
    """Measure in turns, write the row from rank 0."""
    comm, data = MPI.COMM_WORLD, data_name()
    job = engine(comm, data)
    sizes = np.full(job.star.n, 4 * K)
    batches, exchange, together = turns(
        lambda: bare_batches(comm, job),
        lambda: bare_exchange(job.star, sizes, job.problem.d),
        lambda: Watch(engine(comm, data)).round_seconds(),
    )
    if comm.rank == 0:
        print(f"bare minibatches {batches:.1f} us, bare exchange {exchange:.1f} us")
        what = f"VR-MARINA + RandK-10 round ({data}, {BATCH} rows, 5 workers, {comm.size} ranks)"
        write([result(what, together, batches + exchange, "us", "<= 3")], path)


if __name__ == "__main__":
    main(sys.argv[1])
