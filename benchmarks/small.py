"""Small rounds on one rank: messages, bits and a log against a plain NumPy loop that has none.

Both compute the same iterates (`tests/test_peers.py`). What is not compute in mpisim's round is
told with it.
"""

from __future__ import annotations

import sys
import tempfile
from itertools import islice
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks.common import TURNS, Watch, medians, result, write
from benchmarks.peers import experiments
from benchmarks.peers.loops import NumPyDraws
from mpisim.comm.clock import COMPUTE, EVALUATE
from mpisim.comm.communicators import OneProcess
from mpisim.runs.experiment import parse
from mpisim.runs.record import Output
from mpisim.runs.setup import Setup

ROUNDS = 1000
NOT_COMPUTE = tuple(phase for phase in range(EVALUATE) if phase != COMPUTE)


def loop(name: str) -> float:
    """Median seconds of a round of the plain loop."""
    times = [perf_counter()]
    steps = experiments.loop(name, experiments.tables(name), NumPyDraws(0))
    for _ in islice(steps, ROUNDS):
        times.append(perf_counter())
    return float(np.median(np.diff(times)))


def mpisim_seconds(name: str, folder: Path) -> tuple[float, float]:
    """Median seconds of a round, and of what is not compute in it."""
    tables = experiments.tables(name, rounds=ROUNDS, log_every=experiments.LOG_EVERY)
    output = Output(folder / "log.h5", force=True, quiet=True)
    watch = Watch(Setup(parse(tables), OneProcess()), output)  # type: ignore[arg-type]
    return watch.round_seconds(), watch.phase_seconds(*NOT_COMPUTE)


def main(path: str) -> None:
    """Measure in turns and write the rows."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, bound in ((experiments.MARINA, "<= 1.2"), (experiments.DIANA, "<= 2.5")):
            data = experiments.tables(name)["problem"]["data"]
            measured = [(loop(name), *mpisim_seconds(name, Path(folder))) for _ in range(TURNS)]
            plain, elapsed, rest = medians(measured)
            what = f"{name} round ({data}, one rank) / a NumPy loop's"
            rows += [
                result(what, elapsed, plain, "us", bound),
                result(f"{name}, beside compute / a NumPy loop's round", rest, plain, "us"),
            ]
    write(rows, path)


if __name__ == "__main__":
    main(sys.argv[1])
