"""A sweep of 20 short runs: the share of its time outside of rounds.

A run is 1500 rounds of MARINA or DIANA with RandK-10 on a9a, 5 workers, step by theory, each round
logged: less than a second. Each method has 10 seeds. The time runs from the start of MPI, including
imports, to the end of the sweep; rounds are the time in the loop over them, on rank 0. Without a9a
the sample replaces it, and the row says so; its rounds are too short for the bound.
"""

from __future__ import annotations

import sys
from time import perf_counter

from mpi4py import MPI

START = perf_counter()
ROUNDS, SEEDS, K = 1500, 10, 10


def grid(data: str) -> list[dict]:
    """The tables of the 20 points."""
    from mpisim.runs.sweep.grid import expand

    base = {
        "problem": {"name": "nonconvex-loss", "data": data, "workers": 5, "bias": True},
        "method": {"stepsize": "theory"},
        "compressor": {"name": "randk", "k": K},
        "run": {"rounds": ROUNDS},
    }
    seeds = list(range(1, SEEDS + 1))
    return expand(base, {"method": {"name": ["marina", "diana"]}, "run": {"seed": seeds}})


def loop_seconds() -> list[float]:
    """A list to which each later run appends the seconds of its loop."""
    from mpisim.runs.loop import Loop

    spent: list[float] = []
    loop = Loop.run

    def timed(self, *arguments):
        start = perf_counter()
        result = loop(self, *arguments)
        spent.append(perf_counter() - start)
        return result

    Loop.run = timed  # type: ignore[method-assign]
    return spent


def main(path: str) -> None:
    """Sweep in a fresh folder, write the row from rank 0."""
    import tempfile
    from pathlib import Path

    from benchmarks.common import data_name, result, write
    from mpisim.runs.sweep.executor import sweep
    from mpisim.runs.sweep.points import Spread

    comm, data, spent = MPI.COMM_WORLD, data_name(), loop_seconds()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(comm.bcast(place))
        points = sweep(folder, grid(data), comm, spread=Spread(comm.size))
        total = perf_counter() - START
    assert [point.status for point in points] == ["done"] * 2 * SEEDS
    if comm.rank == 0:
        outside = total - sum(spent)
        what = f"sweep of 20 short runs, time outside rounds ({data}, {comm.size} ranks)"
        bound = "<= 0.1" if data == "a9a" else ""
        write([result(what, outside, total, "s", bound)], path)


if __name__ == "__main__":
    main(sys.argv[1])
