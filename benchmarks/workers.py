"""Rounds with 10,000 and a million workers on one rank: MARINA on the quadratic, d = 1,000.

RandK with K = 1 and PermK send about one number a worker. So a round with n workers is compared
with n / 10,000 rounds with 10,000, whose numbers fit into a cache, and each job's memory with 400
MB. PP-MARINA and FedAvg with 100 clients, of n, are compared with themselves at n = 10,000, and
there FedAvg with all of n = 100. All rounds of MARINA are compressed ones. Jobs run in processes of
their own.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys

from benchmarks.common import Watch, result, write
from mpisim.comm.communicators import OneProcess
from mpisim.runs.experiment import parse
from mpisim.runs.setup import Setup

D, CLIENTS, MEGABYTES = 1000, 100, 400
FEW, MANY = 10_000, 1_000_000
JOBS = {  # method and compressor
    "MARINA + RandK": ({"name": "marina", "p": 1e-12}, {"name": "randk", "k": 1}),
    "MARINA + PermK": ({"name": "marina", "p": 1e-12}, {"name": "permk"}),
    "PP-MARINA + RandK": (
        {"name": "pp-marina", "p": 1e-12, "participants": CLIENTS},
        {"name": "randk", "k": 10},
    ),
    "FedAvg": ({"name": "fedavg", "local_steps": 5, "participants": CLIENTS}, {}),
}


def job(name: str, n: int) -> None:
    """Print the median seconds of a compressed round, and the megabytes of this process."""
    method, compressor = JOBS[name]
    rounds = 20 if n > FEW else 200
    tables = {
        "problem": {"name": "quadratic", "workers": n, "dimension": D, "noise": 0.5},
        "method": method | {"stepsize": 1e-3},
        "compressor": compressor or {"name": "identity"},
        "run": {"rounds": rounds, "log_every": rounds},
    }
    seconds = Watch(Setup(parse(tables), OneProcess())).round_seconds()  # type: ignore[arg-type]
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps([seconds, megabytes]))


def measured(name: str, n: int) -> list[float]:
    """What `job` prints, from a process of its own."""
    command = [sys.executable, "-m", "benchmarks.workers", name, str(n)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main(path: str) -> None:
    """A row of time and one of memory for each method, and FedAvg's against all clients."""
    rows = []
    for name in JOBS:
        few, _ = measured(name, FEW)
        if name == "FedAvg":
            every = 1e3 * measured(name, CLIENTS)[0]
            what = f"{name} round, {CLIENTS} of n = {FEW:,} / all of n = {CLIENTS}"
            rows.append(result(what, 1e3 * few, every, "ms", "<= 2"))
        seconds, megabytes = measured(name, MANY)
        times = 1 if "participants" in JOBS[name][0] else MANY / FEW
        what = f"{name} round, n = {MANY:,} / {times:.0f} x n = {FEW:,}"
        bound = "<= 3" if times == 1 else "<= 4"
        rows.append(result(what, 1e3 * seconds, 1e3 * times * few, "ms", bound))
        what = f"{name}, n = {MANY:,}: memory"
        rows.append(result(what, megabytes, MEGABYTES, "MB", "<= 1"))
    write(rows, path)


if __name__ == "__main__":
    job(sys.argv[1], int(sys.argv[2])) if len(sys.argv) > 2 else main(sys.argv[1])
