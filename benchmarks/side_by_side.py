"""Two sweeps on two ranks: one point after the other on both, or side by side, a rank each.

A tenth of the n = 1,000 column of Figure 1 of the PermK paper, and the schemes of Figure 4 of
SAQ on the data sets at hand (else on the sample), in rounds and bits alone, with one seed and
250 rounds. Rounds with much to compute, as those on a9a and w8a, take little more than half of
the time on two ranks, which leaves little to gain. So SAQ's sweep is also compared with one
rank that has the machine to itself. A ratio is that of the seconds of whole sweeps, each of
which loads its problems anew.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from time import perf_counter

from mpi4py import MPI

from benchmarks.common import result, write
from mpisim.problems.data.find import available
from mpisim.runs.labels import Tables
from mpisim.runs.sweep.executor import sweep
from mpisim.runs.sweep.grid import read
from mpisim.runs.sweep.points import Spread

RUN = Path(__file__).resolve().parents[1] / "run"
ROUNDS = 250  # of SAQ's points
SHOWN = ("qsgd", "block-quant-plus")  # the compressors of SAQ's Figure 4


def permk() -> list[Tables]:
    """MARINA with RandK and PermK, and EF21 with TopK, on 1,000 workers: every tenth point."""
    _, points = read(RUN / "permk" / "quadratic.toml", ["sweep.run.seed=[1]"])
    return [point for point in points if point["problem"]["workers"] == 1000][::10]


def saq() -> list[Tables]:
    """DCGD(+) and DIANA(+) with quantization, by rounds and bits."""
    points: list[Tables] = []
    for file in ("schemes", "quant"):
        points += read(RUN / "saq" / f"{file}.toml", ["sweep.run.seed=[1]"])[1]
    shown = [p for p in points if _shown(p["compressor"])]
    shown = [p | {"run": p["run"] | {"rounds": ROUNDS}} for p in shown]
    here = [p for p in shown if available(p["problem"]["data"])]
    return here or [_on_sample(p) for p in shown if p["problem"]["data"] == "splice"]


def _shown(compressor: Tables) -> bool:
    inner = compressor.get("inner", compressor)
    return inner["name"] in SHOWN and inner.get("steps") is None


def _on_sample(point: Tables) -> Tables:
    return point | {"problem": point["problem"] | {"data": "sample"}}


def seconds(points: list[Tables], comm: MPI.Intracomm, size: int) -> float:
    """Of a sweep in a new folder on the ranks of ``comm``, ``size`` of them for each run."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(comm.bcast(place))
        comm.Barrier()
        start = perf_counter()
        ended = sweep(folder, points, comm, spread=Spread(size))
        taken = perf_counter() - start
        comm.Barrier()
    assert all(point.status in ("done", "diverged") for point in ended), [p.reason for p in ended]
    return taken


def main(path: str) -> None:
    """Side by side last; rank 0 writes the rows."""
    world, rows = MPI.COMM_WORLD, []
    points = permk()
    seconds(points[:2], world, world.size)  # compiles
    one_by_one, measured = seconds(points, world, world.size), seconds(points, world, 1)
    what = "a tenth of permk-fig1, n = 1,000: side by side, speed-up over one by one"
    rows.append(result(what, measured, one_by_one, "s", ">= 1.8", inverse=True))
    points = saq()
    seconds(points[:2], world, world.size)
    one_by_one = seconds(points, world, world.size)
    on_one = seconds(points, MPI.COMM_SELF, 1) if world.rank == 0 else 0.0
    measured = seconds(points, world, 1)
    what = "saq-fig4, bits: side by side, speed-up over one by one"
    rows.append(result(what, measured, one_by_one, "s", inverse=True))
    what = "the same, speed-up over one rank alone"
    rows.append(result(what, measured, on_one, "s", ">= 1.8", inverse=True))
    if world.rank == 0:
        write(rows, path)


if __name__ == "__main__":
    main(sys.argv[1])
