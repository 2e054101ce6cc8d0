"""The start of a command against its libraries', and the first rounds of a run against later ones.

A run of one round, with all kernels on the disk, is compared with a process that imports Numba and
h5py, and `--help` with an empty one: by CPU seconds, those of all ranks, in alternating turns.

First rounds are compared with later ones of the same kind. Each run is a process of its own, with a
full cache of kernels, and for one method with an empty one, too. Seconds are those that the log
charges. Of the same round in several turns the least counts, because a process is interrupted now
and then; of the first five rounds, the one that took longest. A round is dense or compressed.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile

import numpy as np

COMMAND_TURNS = 3
ONE_ROUND = (
    "problem={ name = 'logistic', data = 'sample', workers = 8 }",
    "method={ name = 'marina', stepsize = 0.1 }",
    "compressor={ name = 'randk', k = 10 }",
    "run.rounds=1",
)
LIBRARIES = "import numba, h5py"
FIRST, ROUNDS = 5, 60
TURNS = {"warm": 3, "cold": 2}
MOST_KERNELS = "DIANA+"  # the method that runs with an empty cache, too
METHODS = {
    "MARINA": (
        {"name": "marina", "p": 0.3, "stepsize": 0.1},
        {"name": "randk", "k": 20},
    ),
    "EF21": ({"name": "ef21", "stepsize": 0.1}, {"name": "topk", "k": 10}),
    "DIANA+": (
        {"name": "diana", "stepsize": 0.1},
        {"name": "smooth", "inner": {"name": "quant-plus"}},
    ),
}


def measure(method: str) -> None:
    """In a process of its own: run, and print the seconds of each row and its dense rounds."""
    from benchmarks.common import data_name
    from mpisim import Experiment, run

    keys, compressor = METHODS[method]
    problem = {"name": "logistic", "data": data_name(), "workers": 8, "l2": 1e-3}
    tables = {
        "problem": problem,
        "method": keys,
        "compressor": compressor,
        "run": {"rounds": ROUNDS},
    }
    result = run(Experiment.from_dict(tables))
    rows = result.rows
    seconds = np.sum([rows[name] for name in rows if name.startswith("time_")], axis=0)
    dense = np.diff(rows["bits_up"]) == 8 * 32 * result.x.size
    print(json.dumps({"seconds": seconds.tolist(), "dense": dense.tolist()}))


def runs(method: str, cache: str) -> tuple[float, float]:
    """Seconds of the set-up exchange, and the ratio of the slowest of the first rounds."""
    job = [sys.executable, "-m", "benchmarks.start", method]
    jobs = []
    for _ in range(TURNS[cache]):
        with tempfile.TemporaryDirectory() as folder:
            cold = {"NUMBA_CACHE_DIR": folder} if cache == "cold" else {}
            done = subprocess.run(job, env=os.environ | cold, check=True, capture_output=True)
        jobs.append(json.loads(done.stdout))
    rows = np.min([run["seconds"] for run in jobs], axis=0)
    spent = np.min([np.diff(run["seconds"]) for run in jobs], axis=0)
    dense = np.array(jobs[0]["dense"])
    later = dense[FIRST:]
    kinds = {kind: np.median(spent[FIRST:][later == kind]) for kind in set(later.tolist())}
    first = [spent[k] / kinds[dense[k]] for k in range(FIRST) if dense[k] in kinds]
    return float(rows[0]), float(max(first))


def cpu_seconds(command: list[str]) -> float:
    """CPU seconds of a command with all processes that it starts and waits for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def commands(folder: str) -> list[dict]:
    """The rows of commands against processes that only import what they need."""
    from benchmarks.common import result

    python = [sys.executable, "-c"]
    words = [word for setting in ONE_ROUND for word in ("--set", setting)]
    mpisim = [sys.executable, "-m", "mpisim"]
    run = [*mpisim, "run", *words, "--force", "--out", f"{folder}/log.h5"]
    ranks = ["mpirun", "-n", "4"]
    compared = (
        ("mpisim --help / an empty Python", [*mpisim, "--help"], [*python, "pass"], "<= 3"),
        ("a run of one round / its libraries", run, [*python, LIBRARIES], "<= 3"),
        (
            "the same on 4 ranks / MPI and its libraries",
            [*ranks, *run],
            [*ranks, *python, f"from mpi4py import MPI; {LIBRARIES}"],
            "<= 3",
        ),
    )
    rows = []
    for what, command, bare, bound in compared:
        cpu_seconds(command)
        turns = [(cpu_seconds(command), cpu_seconds(bare)) for _ in range(COMMAND_TURNS)]
        measured, against = map(statistics.median, zip(*turns, strict=True))
        rows.append(result(f"{what}, CPU", measured, against, "s", bound))
    return rows


def main(path: str) -> None:
    """Measure, and write the rows."""
    from benchmarks.common import result, write

    with tempfile.TemporaryDirectory() as folder:
        table = commands(folder)
    for method in METHODS:
        caches = ("warm", "cold") if method == MOST_KERNELS else ("warm",)
        jobs = {cache: runs(method, cache) for cache in caches}
        if method == MOST_KERNELS:
            exchange = {cache: seconds for cache, (seconds, _) in jobs.items()}
            what = "set-up exchange, kernels compiled in this run"
            table.append(result(what, exchange["cold"], exchange["warm"], "s", "<= 1.5"))
        for cache, (_, ratio) in jobs.items():
            what = f"{method}: slowest of the first {FIRST} rounds, {cache}"
            table.append(result(what, ratio, 1.0, "x", "<= 3"))
    write(table, path)


if __name__ == "__main__":
    measure(sys.argv[1]) if sys.argv[1] in METHODS else main(sys.argv[1])
