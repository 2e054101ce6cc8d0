"""Rounds on the quadratic task (d = 1000) at n = 10, 1000, 10000, against their bare work.

MARINA + PermK and + RandK: against that round's random numbers, a permutation or each worker's
subset, and one pass over the coordinates sent. EF21 + TopK: against one pass that reads and writes
each number of its n x d state, which its bounds make needless; so is compressing alone, which finds
the largest differences. Rounds take wall time, without the first, which sends all gradients; only
the first and last rows are logged. Both sides alternate. Peak memory is that of a separate process;
MARINA's also has rounds of full gradients, and EF21's may add its state to what n = 10 takes.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import numpy as np
from mpi4py import MPI
from numba import njit

from benchmarks.common import later_round_seconds, result, seconds, turns, write
from mpisim.compressors.deal import shuffle
from mpisim.core.lazy_rows import innovations
from mpisim.core.rng import Draw, Streams
from mpisim.runs.experiment import parse
from mpisim.runs.setup import Setup

D = 1000
SIZES = {10: 1000, 1000: 1000, 10_000: 500}  # workers: rounds


def tables(method: str, compressor: str, n: int, rounds: int) -> dict:
    """The experiment, with the paper's K and theory's p."""
    keys = {} if compressor == "permk" else {"k": -(-D // n)}
    return {
        "problem": {"name": "quadratic", "workers": n, "dimension": D, "noise": 0.1},
        "method": {"name": method, "stepsize": 0.1},
        "compressor": {"name": compressor} | keys,
        "run": {"rounds": rounds, "log_every": rounds},
    }


def round_seconds(method: str, compressor: str, n: int, rounds: int) -> float:
    """Wall seconds of a round after the first."""
    return later_round_seconds(tables(method, compressor, n, rounds))


@njit(cache=True)
def one_pass(x, indices, values):
    """Read the coordinates sent, write their values."""
    for t in range(indices.size):
        values[t] = x[indices[t]]


@njit(cache=True)
def touch(state):
    """Read and write every number."""
    for i in range(state.shape[0]):
        for j in range(state.shape[1]):
            state[i, j] += 1.0


def bare(compressor: str, n: int) -> Callable[[], None]:
    """The round's permutation or subsets, and one pass over the coordinates sent."""
    draw, k = Draw(Streams(1), "up", 1, 0, n), -(-D // n)
    sent = max(D, n // D * D) if compressor == "permk" else n * k
    indices = np.random.default_rng(0).integers(0, D, sent)
    x, values, items = np.zeros(D), np.empty(sent, np.float32), np.arange(max(D, n))

    def work() -> None:
        if compressor == "permk":
            shuffle(draw.shared_words(max(D, n)), items)
        else:
            draw.subsets(D, k)
        one_pass(x, indices, values)

    return work


def peak(method: str, compressor: str, n: int) -> float:
    """Peak MB of a separate process with 20 rounds, half of them with full gradients."""
    changed = tables(method, compressor, n, 20)
    if method == "marina":
        changed["method"]["p"] = 0.5
    code = (
        "from mpi4py import MPI\nfrom mpisim.runs.experiment import parse\n"
        "from mpisim.runs.loop import run\nfrom mpisim.runs.record import Output\n"
        f"run(parse({changed!r}), Output(None, quiet=True), MPI.COMM_SELF)\n"
        "print(next(line.split()[1] for line in open('/proc/self/status') if 'VmHWM' in line))"
    )
    job = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(job.stdout.split()[-1]) / 1024


def marina(compressor: str) -> list[dict]:
    """A row for each n, and the growth."""
    rows, by_workers = [], {}
    for n, rounds in SIZES.items():
        work = bare(compressor, n)
        round_seconds("marina", compressor, n, 20)
        elapsed, least = turns(
            lambda n=n, r=rounds: round_seconds("marina", compressor, n, r),  # type: ignore[misc]
            lambda w=work: seconds(w, 300),  # type: ignore[misc]
        )
        by_workers[n] = elapsed
        what = f"MARINA + {compressor} round, quadratic, n = {n}"
        rows.append(result(what, elapsed, least, "us", "<= 10" if n >= 1000 else ""))
    what = f"MARINA + {compressor} round, n = 10,000 / n = 10"
    return [*rows, result(what, by_workers[10_000], by_workers[10], "us")]


def compressing(n: int) -> Callable[[], object]:
    """C(grad f_i(x) - g_i) of all workers, added to g_i, at another x in each call."""
    job = Setup(parse(tables("ef21", "topk", n, 1)), MPI.COMM_SELF)
    x, g_i = job.problem.initial_point(), job.oracle.lazy_gradients(np.zeros(D))
    state, draw = g_i.dense(), job.star.draw("up")  # type: ignore[union-attr]

    def work() -> None:
        nonlocal x
        x = 0.99 * x
        v = innovations(job.oracle.lazy_gradients(x), state)
        job.compressor.compress(v, draw).add_to(state)  # type: ignore[arg-type]

    return work


def ef21() -> list[dict]:
    """EF21 + TopK at n = 10,000 against a pass over its state, and n = 1,000."""
    n = 10_000
    state, work = np.zeros((n, D)), compressing(n)
    alone, elapsed, least = turns(
        lambda: seconds(work, 10),
        lambda: round_seconds("ef21", "topk", n, 60),
        lambda: seconds(lambda: touch(state), 10),
    )
    what = f"EF21 + topk, quadratic, n = {n}:"
    fewer = turns(lambda: round_seconds("ef21", "topk", n // 10, 300))[0]
    floats = peak("ef21", "topk", 10) + 8 * state.size / 2**20
    memory = peak("ef21", "topk", n)
    return [
        result(f"{what} compressing / a pass", alone, least, "us", "<= 0.5"),
        result(f"{what} round / a pass", elapsed, least, "us", "<= 1"),
        result(f"{what} round / n = {n // 10}", elapsed, fewer, "us"),
        result(f"{what} peak memory", memory, floats, "MB", "<= 1.05"),
    ]


def main(path: str) -> None:
    """All rows."""
    rows = [*marina("permk"), *marina("randk"), *ef21()]
    memory = peak("marina", "permk", 10_000)
    rows.append(result("MARINA + permk at n = 10000, peak memory", memory, 200, "MB", "<= 1"))
    write(rows, path)


if __name__ == "__main__":
    main(sys.argv[1])
