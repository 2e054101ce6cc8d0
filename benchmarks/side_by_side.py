"""Two sweeps, one point after the other on both ranks against side by side, a rank each.

The n = 1,000 column of Figure 1 of the PermK paper, and the schemes of Figure 4 of SAQ on the data
sets at hand (else on the sample), in rounds and bits alone: their panels of seconds need runs that
have the machine to themselves. A ratio is that of the seconds of whole sweeps, each of which loads
its problems anew.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from time import perf_counter

from mpi4py import MPI

from benchmarks.common import result, write
from mpisim.problems.data.find import available
from mpisim.runs.sweep.grid import read
from mpisim.runs.sweep.points import Spread
from mpisim.runs.sweep.runner import sweep
from mpisim.runs.tables import Tables

RUN = Path(__file__).resolve().parents[1] / "run"
SHOWN = ("qsgd", "block-quant-plus")  # the compressors of SAQ's Figure 4


def permk() -> list[Tables]:
    """MARINA with RandK and PermK, and EF21 with TopK, on 1,000 workers."""
    settings = ["sweep.seeds=[1]", "run.rounds=2000"]
    _, points = read(RUN / "permk" / "quadratic.toml", settings)
    return [point for point in points if point["problem"]["workers"] == 1000]


def saq() -> list[Tables]:
    """DCGD(+) and DIANA(+) with quantization, by rounds and bits."""
    shorter = ["sweep.run.seed=[1, 2]", "run.rounds=2000"]
    points: list[Tables] = []
    for file in ("schemes", "diana"):
        points += read(RUN / "saq" / f"{file}.toml", shorter)[1]
    shown = [p for p in points if _shown(p["compressor"])]
    here = [p for p in shown if available(p["problem"]["data"])]
    return here or [_on_sample(p) for p in shown if p["problem"]["data"] == "splice"]


def _shown(compressor: Tables) -> bool:
    inner = compressor.get("inner", compressor)
    return inner["name"] in SHOWN and inner.get("steps") is None


def _on_sample(point: Tables) -> Tables:
    return point | {"problem": point["problem"] | {"data": "sample"}}


def seconds(points: list[Tables], size: int) -> float:
    """Of a sweep in a new folder, on ``size`` ranks a run."""
    comm = MPI.COMM_WORLD
    with tempfile.TemporaryDirectory() as own:
        folder = Path(comm.bcast(own))
        comm.Barrier()
        start = perf_counter()
        ended = sweep(folder, points, comm, spread=Spread(size))
        taken = perf_counter() - start
        comm.Barrier()
    assert all(point.status in ("done", "diverged") for point in ended), [p.reason for p in ended]
    return taken


def main(path: str) -> None:
    """Both grids, one after the other first; rank 0 writes the rows."""
    comm, rows = MPI.COMM_WORLD, []
    for name, points in (("permk-fig1, n = 1,000", permk()), ("saq-fig4, bits", saq())):
        seconds(points[:2], comm.size)  # compiles
        against, measured = seconds(points, comm.size), seconds(points, 1)
        what = f"{name}: side by side, speed-up over one by one"
        rows.append(result(what, measured, against, "s", ">= 1.8", inverse=True))
    if comm.rank == 0:
        write(rows, path)


if __name__ == "__main__":
    main(sys.argv[1])
