"""CPU seconds of the server's rank against those of a worker's rank, on 8 ranks.

Rank 0 has workers like any other rank, and besides decodes and adds up n = 1,000 messages of QSGD
(DIANA, s = 1). The clock of the run counts CPU time here, so ranks may share cores, and
communication is left out: it is mostly waiting, for which MPI takes CPU time, too.
"""

from __future__ import annotations

import statistics
import sys
from time import process_time

from mpi4py import MPI

from benchmarks.common import data_name, result, write
from mpisim.comm import clock
from mpisim.comm.clock import COMMUNICATE, PHASES
from mpisim.runs.experiment import parse
from mpisim.runs.loop import run_rounds
from mpisim.runs.record import Output
from mpisim.runs.setup import Setup
from mpisim.runs.stop import StopSignals

ROUNDS, N = 100, 1000
WORK = [phase for phase in range(len(PHASES)) if phase != COMMUNICATE]


def work_seconds(problem: dict, comm: MPI.Intracomm) -> float:
    """This rank's CPU seconds of a round, without communication."""
    tables = {
        "problem": problem | {"workers": N},
        "method": {"name": "diana", "stepsize": 1e-3},
        "compressor": {"name": "qsgd", "s": 1},
        "run": {"rounds": ROUNDS, "log_every": ROUNDS},
    }
    job = Setup(parse(tables), comm)
    with StopSignals() as signals:
        run_rounds(job, Output(None, quiet=True), signals)
    return sum(job.clock.seconds[phase] for phase in WORK) / ROUNDS


def main(path: str) -> None:
    """A row for each problem."""
    clock.perf_counter = process_time  # type: ignore[attr-defined]
    comm, rows = MPI.COMM_WORLD, []
    quadratic = {"name": "quadratic", "dimension": 1000, "noise": 0.5}
    for problem in (quadratic, {"name": "logistic", "data": data_name()}):
        ranks = comm.gather(1e6 * work_seconds(problem, comm))
        if ranks is not None:
            where = problem.get("data", "quadratic, d = 1,000")
            what = f"CPU of rank 0 / a worker rank, QSGD on {where}, {comm.size} ranks"
            rows.append(result(what, ranks[0], statistics.median(ranks[1:]), "us", "<= 2"))
    if comm.rank == 0:
        write(rows, path)


if __name__ == "__main__":
    main(sys.argv[1])
