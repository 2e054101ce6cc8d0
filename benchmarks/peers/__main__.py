"""python -m benchmarks.peers [--jax PYTHON] [--pfl PYTHON] [--fednl PROGRAM]: mpisim and others.

Plain loops, a JAX scan, pfl, u-FedNL and a string coder; without JAX, pfl or u-FedNL their rows are
left out. Each program runs in a process of its own, in turns; a number is the median over blocks of
rounds of all turns. NumPy, SciPy, pfl and mpisim on one rank use one core; the JAX scan is compared
on as many cores as there are ranks. GD and FedAvg are compared by CPU seconds. Programs compute the
same iterates from the same draws: the scan and pfl's GD are checked here, the loops in
`tests/test_peers.py`. pfl's FedAvg takes the first rows of each client for its batches.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from itertools import islice
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import scipy

import mpisim
from benchmarks.common import result
from benchmarks.peers import experiments, fednl
from benchmarks.peers.experiments import BATCH, DIANA, FEDERATED, L2, MARINA, STEPS, K
from benchmarks.peers.loops import NumPyDraws
from benchmarks.table import show

TURNS, BLOCK, BLOCKS = 6, 50, 8
FEW, TARGETS = 5, (20, 10, 200, 10)  # rounds in a block of `FEDERATED`, and times pfl's rounds
CHECKED = 20  # rounds in which the scan has the draws of the loop
MPIRUN = ("mpirun", "-n", "2")
HERE = Path(__file__).parent


def loop_seconds(name: str, block: int = BLOCK, clock=perf_counter) -> list[float]:
    """Seconds of a round of the plain loop, for each block."""
    steps, times = experiments.loop(name, experiments.tables(name), NumPyDraws(0)), []
    for _ in range(BLOCKS + 1):
        times.append(clock())
        for _ in islice(steps, block):
            pass
    return (np.diff([*times, clock()])[1:] / block).tolist()


def printed(*command: object) -> dict:
    """What a program prints as JSON."""
    done = subprocess.run([*map(str, command)], check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout.splitlines()[-1])


def mpisim_seconds(name: str, *launcher: str, clock: str = "seconds") -> list[float]:
    """Seconds of a round of mpisim, for each block."""
    module = [sys.executable, "-m", "benchmarks.peers.ours"]
    return printed(*launcher, *module, name, BLOCK, BLOCKS)[clock]


def write_federated(name: str, path: Path) -> np.ndarray:
    """Write what `federated` reads, and return the loop's iterate after a block of full batches."""
    tables = experiments.tables(name)
    problem, keys = tables["problem"], tables["method"]
    (a, y), n = experiments.rows(problem), problem["workers"]
    m = y.size // n
    np.savez(
        path,
        rows=a.toarray().reshape(n, m, -1),
        labels=y.reshape(n, m),
        l2=problem["l2"],
        gamma=keys["stepsize"],
        steps=keys.get("local_steps", 1),
        batch=keys.get("batch", m),
    )
    return next(islice(experiments.loop(name, tables, NumPyDraws(0)), FEW - 1, None))


def federated_seconds(python: str, name: str, path: Path, expected: np.ndarray) -> list[float]:
    """CPU seconds of a round of pfl, for each block; GD's iterate must be the loop's."""
    trained = printed(python, HERE / "federated.py", path, FEW, BLOCKS)
    if name.startswith("GD"):  # pfl computes in float32
        np.testing.assert_allclose(trained["x"], expected, rtol=1e-4, atol=1e-5)
    return trained["seconds"]


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


def versions(jax: str, pfl: str) -> str:
    """Of what is compared, a line."""
    parts = [f"{m.__name__} {m.__version__}" for m in (mpisim, np, scipy)]
    for python, names in ((jax, ("jax",)), (pfl, ("pfl", "torch"))):
        code = f"import {', '.join(names)}; print({', '.join(f'{n}.__version__' for n in names)})"
        if python:
            done = subprocess.run([python, "-c", code], check=True, stdout=subprocess.PIPE)
            numbers = done.stdout.decode().split()
            parts += [f"{name} {number}" for name, number in zip(names, numbers, strict=True)]
    return f"{', '.join(parts)}; FedAvg: {STEPS} local steps, batch {BATCH}; l2 = {L2}"


def main() -> int:
    """Measure in turns and print the table; always 0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers")
    parser.add_argument("--jax", default="", help="a Python with JAX")
    parser.add_argument("--pfl", default="", help="a Python with pfl and PyTorch")
    parser.add_argument("--fednl", default="", help="u-FedNL's bin_fednl_local")
    arguments = parser.parse_args()
    for program in filter(None, vars(arguments).values()):
        if shutil.which(program) is None:
            parser.error(f"{program}: is not a program that can be run")
    python, programs = arguments.jax, {}
    for name in (MARINA, DIANA):
        programs[name, "loop"] = lambda name=name: loop_seconds(name)
        programs[name, "1 rank"] = lambda name=name: mpisim_seconds(name)
        programs[name, "2 ranks"] = lambda name=name: mpisim_seconds(name, *MPIRUN)
    with tempfile.TemporaryDirectory() as folder:
        if python:
            data = Path(folder) / "marina.npz"
            expected = write_scan_data(data)
            for cores in (1, 2):
                scan = partial(scan_seconds, python, data, expected, cores)
                programs[MARINA, f"scan {cores}"] = scan
        else:
            print("no Python with JAX is given: its rows are left out")
        for name in FEDERATED:
            path = Path(folder) / f"{name}.npz"
            expected = write_federated(name, path)
            programs[name, "loop"] = lambda name=name: loop_seconds(name, FEW, process_time)
            programs[name, "1 rank"] = lambda name=name: mpisim_seconds(name, clock="cpu")
            if arguments.pfl:
                programs[name, "pfl"] = partial(
                    federated_seconds, arguments.pfl, name, path, expected
                )
        print(versions(python, arguments.pfl))
        runs: dict[str, list[dict]] = {}
        for turn in range(TURNS):
            print(f"turn {turn + 1} of {TURNS}", flush=True)
            for row in rows_of({key: measure() for key, measure in programs.items()}):
                runs.setdefault(row["what"], []).append(row)
        for row in fednl.turns(arguments.fednl, Path(folder), TURNS) if arguments.fednl else ():
            runs.setdefault(row["what"], []).append(row)
        elias = Path(folder) / "elias.json"
        subprocess.run([sys.executable, "-m", "benchmarks.elias", str(elias)], check=True)
        coder = json.loads(elias.read_text())
    show(runs | {row["what"]: [row] for row in coder})
    return 0


def rows_of(seconds: dict[tuple[str, str], list[float]]) -> list[dict]:
    """The table's rows of one turn, from what each program took for a round in each block."""
    ms = {key: float(np.median(blocks)) * 1e3 for key, blocks in seconds.items()}
    rows = []
    for name in (MARINA, DIANA):
        data_name = experiments.tables(name)["problem"]["data"]
        for ranks, cores in (("1 rank", 1), ("2 ranks", 2)):
            for peer, key in (("a NumPy and SciPy loop", "loop"), ("a JAX scan", f"scan {cores}")):
                if (name, key) in ms:
                    what = f"{name}, {data_name}: {ranks}, faster than {peer}"
                    rows.append(result(what, ms[name, ranks], ms[name, key], "ms", inverse=True))
    for name, target in zip(FEDERATED, TARGETS, strict=True):
        if (name, "pfl") in ms:
            cost = ms[name, "1 rank"], ms[name, "pfl"]
            what = f"{name}: faster than pfl, CPU"
            rows.append(result(what, *cost, "ms", f">= {target}", inverse=True))
        bound = "<= 1.5" if name.startswith("FedAvg") else ""
        cost = ms[name, "1 rank"], ms[name, "loop"]
        rows.append(result(f"{name}: against a NumPy loop, CPU", *cost, "ms", bound))
    return rows


if __name__ == "__main__":
    sys.exit(main())
