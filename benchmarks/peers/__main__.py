"""python -m benchmarks.peers [PYTHON]: mpisim against plain loops, a JAX scan and a string coder.

PYTHON has JAX; without it that row is left out. Each program runs in a process of its own, in
turns; a number is the median over blocks of rounds of all turns. NumPy, SciPy and mpisim on one
rank use one core; the JAX scan is compared on as many cores as there are ranks. Programs compute
the same iterates from the same draws: the scan is checked here, the loops in
`tests/test_peers.py`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from itertools import islice
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks.common import result
from benchmarks.peers import experiments
from benchmarks.peers.experiments import DIANA, MARINA, K
from benchmarks.peers.loops import NumPyDraws
from benchmarks.table import show

TURNS, BLOCK, BLOCKS = 5, 50, 8
CHECKED = 20  # rounds in which the scan has the draws of the loop
MPIRUN = ("mpirun", "-n", "2")
HERE = Path(__file__).parent


def loop_seconds(name: str) -> list[float]:
    """Seconds of a round of the plain loop, for each block."""
    steps, times = experiments.loop(name, experiments.tables(name), NumPyDraws(0)), []
    for _ in range(BLOCKS + 1):
        times.append(perf_counter())
        for _ in islice(steps, BLOCK):
            pass
    return (np.diff([*times, perf_counter()])[1:] / BLOCK).tolist()


def printed(*command: object) -> dict:
    """What a program prints as JSON."""
    done = subprocess.run([*map(str, command)], check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def mpisim_seconds(name: str, *launcher: str) -> list[float]:
    """Seconds of a round of mpisim, for each block."""
    module = [sys.executable, "-m", "benchmarks.peers.ours"]
    return printed(*launcher, *module, name, BLOCK, BLOCKS)["seconds"]


def write_scan_data(path: Path) -> np.ndarray:
    """Write what the scan reads, and return the loop's iterate with the same draws."""
    tables, draws = experiments.tables(MARINA), NumPyDraws(1)
    (a, y), n = experiments.rows(tables["problem"]), tables["problem"]["workers"]
    d = a.shape[1]
    coins = [draws.coin(k) for k in range(CHECKED)]
    subsets = np.array([draws.subsets(k, n, d, K) for k in range(CHECKED)])
    gamma, p = tables["method"]["stepsize"], tables["method"]["p"]
    np.savez(
        path,
        rows=a.toarray().reshape(n, -1, d),
        labels=y.reshape(n, -1),
        gamma=gamma,
        p=p,
        coins=coins,
        subsets=subsets,
    )

    class Same(NumPyDraws):
        def coin(self, k: int) -> float:
            return coins[k - 1]

        def subsets(self, k: int, n: int, d: int, size: int) -> np.ndarray:
            return subsets[k - 1]

    return next(islice(experiments.loop(MARINA, tables, Same(0)), CHECKED - 1, None))


def scan_seconds(python: str, data: Path, expected: np.ndarray, cores: int) -> list[float]:
    """Seconds of a round of the JAX scan, for each block; its iterate must be the loop's."""
    scanned = printed(python, HERE / "scan.py", data, cores, BLOCK, BLOCKS)
    np.testing.assert_allclose(scanned["x"], expected, rtol=1e-9, atol=1e-12)
    return scanned["seconds"]


def main(python: str = "") -> int:
    """Measure in turns and print the table; always 0."""
    programs = {}
    for name in (MARINA, DIANA):
        programs[name, "loop"] = lambda name=name: loop_seconds(name)
        programs[name, "1 rank"] = lambda name=name: mpisim_seconds(name)
        programs[name, "2 ranks"] = lambda name=name: mpisim_seconds(name, *MPIRUN)
    with tempfile.TemporaryDirectory() as folder:
        if python:
            data = Path(folder) / "marina.npz"
            expected = write_scan_data(data)
            for cores in (1, 2):
                programs[MARINA, f"scan {cores}"] = lambda c=cores: scan_seconds(
                    python, data, expected, c
                )
        else:
            print("no Python with JAX is given: its rows are left out")
        seconds: dict[tuple[str, str], list[float]] = {key: [] for key in programs}
        for turn in range(TURNS):
            print(f"turn {turn + 1} of {TURNS}", flush=True)
            for key, measure in programs.items():
                seconds[key] += measure()
        elias = Path(folder) / "elias.json"
        subprocess.run([sys.executable, "-m", "benchmarks.elias", str(elias)], check=True)
        coder = json.loads(elias.read_text())
    ms = {key: float(np.median(scanned)) * 1e3 for key, scanned in seconds.items()}
    rows = []
    for name in (MARINA, DIANA):
        data_name = experiments.tables(name)["problem"]["data"]
        for ranks, cores in (("1 rank", 1), ("2 ranks", 2)):
            for peer, key in (("a NumPy and SciPy loop", "loop"), ("a JAX scan", f"scan {cores}")):
                if (name, key) in ms:
                    what = f"{name}, {data_name}: {ranks}, faster than {peer}"
                    rows.append(result(what, ms[name, ranks], ms[name, key], "ms", inverse=True))
    show(rows + coder)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
