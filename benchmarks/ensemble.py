"""Five steps of a grid that advance together, against one after the other: CPU seconds of a run.

MARINA + PermK on the quadratic tasks of the PermK paper's Figure 1, n = 10; MARINA + RandK on
mushrooms, of MARINA's Figure 1; DIANA + QSGD on splice, of SAQ's. Rows are evaluated as often as
in these studies, and written nowhere. Without a data set the sample replaces it, without a bound.
"""

from __future__ import annotations

import sys
from time import process_time

from benchmarks.common import medians, result, write
from mpisim.comm.communicators import OneProcess
from mpisim.problems.data.find import available
from mpisim.runs.ensemble import run_together
from mpisim.runs.experiment import parse
from mpisim.runs.loop import run_rounds
from mpisim.runs.record import Output
from mpisim.runs.setup import ProblemCache, Setup
from mpisim.runs.stop import StopSignals

MULTIPLES, TURNS = (1.0, 1.25, 1.5, 1.75, 2.0), 7
PERMK = {"name": "quadratic", "workers": 10, "dimension": 1000, "noise": 0.05}
MARINA = {"name": "nonconvex-loss", "data": "mushrooms", "workers": 5, "bias": True}
SAQ = {"name": "logistic", "data": "splice", "workers": 6, "l2": 1e-3, "split": "sorted-by-norm"}
CASES = (
    ("MARINA + PermK, quadratic", PERMK, "marina", {"name": "permk"}, 2000, 20, ">= 1.6"),
    ("MARINA + RandK-1", MARINA, "marina", {"name": "randk", "k": 1}, 500, 5, ">= 1.7"),
    ("DIANA + QSGD", SAQ, "diana", {"name": "qsgd"}, 1000, 10, ">= 1.6"),
)


def setups(cache: ProblemCache, tables: dict) -> list[Setup]:
    """An experiment with each step."""
    steps = [{"stepsize": {"theory": multiple}} for multiple in MULTIPLES]
    each = [tables | {"method": tables["method"] | step} for step in steps]
    return [Setup(parse(one), OneProcess(), cache) for one in each]  # type: ignore[arg-type]


def turn(alone: list[Setup], together: list[Setup]) -> tuple[float, float]:
    """CPU seconds of all runs: one after the other, and together."""
    output = Output(None, quiet=True)
    with StopSignals() as signals:
        start = process_time()
        for one in alone:
            run_rounds(one, output, signals)
        middle = process_time()
        run_together(together, [output] * len(together), signals)
        return middle - start, process_time() - middle


def main(path: str) -> None:
    """Measure in turns and write the rows."""
    rows = []
    for name, problem, method, compressor, rounds, every, bound in CASES:
        if "data" in problem and not available(str(problem["data"])):
            problem, bound = problem | {"data": "sample"}, ""
        tables = {"problem": problem, "method": {"name": method}, "compressor": compressor}
        tables["run"] = {"rounds": rounds, "log_every": every}
        cache = ProblemCache()
        measured = [turn(setups(cache, tables), setups(cache, tables)) for _ in range(TURNS)]
        alone, together = medians(measured[1:])  # the first turn loads kernels
        rounds_of_all, data = rounds * len(MULTIPLES), problem.get("data", "n = 10")
        seconds = together / rounds_of_all, alone / rounds_of_all
        what = f"{name} ({data}), a round of 5 steps together"
        rows.append(result(what, *seconds, "us", bound, inverse=True))
    write(rows, path)


if __name__ == "__main__":
    main(sys.argv[1])
