"""Rounds on the autoencoder (MNIST, n = 1000, d = 25,088) against their bare matrix products.

With images A_i (60, 784) and b = [E^T, K] (784, 32), a round of MARINA needs A_i b for each worker
(those at the last point are kept), one of EF21 also the gradients, A_i^T (A_i b): by BLAS, on dense
images, worker by worker. Rounds take wall time, without the first, which sends all gradients; only
the first and last rows are logged. Both sides alternate, float64, one core. Without MNIST, 60
workers with 19 generated images each replace it, and the rows say so.
"""

from __future__ import annotations

import sys

import numpy as np

from benchmarks.common import later_round_seconds, result, seconds, turns, write
from mpisim.problems.data.find import available
from mpisim.runs.setup import ProblemCache

ROUNDS = 6
CHUNK = 100  # workers whose images are dense at the same time
SIZES = {"mnist": (1000, 26), "sample": (60, 419)}  # data: n and K = ceil(d / n)


def tables(data: str, method: str, compressor: str) -> dict:
    """The experiment, with the paper's K."""
    n, k = SIZES[data]
    return {
        "problem": {"name": "autoencoder", "data": data, "workers": n},
        "method": {"name": method, "stepsize": 1e-3},
        "compressor": {"name": compressor} | ({} if compressor == "permk" else {"k": k}),
        "run": {"rounds": ROUNDS},
    }


def products(data: str, gradients: bool) -> float:
    """Seconds of the bare products of all workers."""
    n, size = SIZES[data][0], 60 if data == "mnist" else 19
    rng = np.random.default_rng(0)
    images, b = rng.random((CHUNK, size, 784)), rng.random((784, 32))
    codes, moments = np.empty((CHUNK, size, 32)), np.empty((CHUNK, 784, 32))

    def work() -> None:
        np.matmul(images, b, out=codes)
        if gradients:
            np.matmul(images.transpose(0, 2, 1), codes, out=moments)

    return seconds(work, 3) * n / CHUNK


def main(path: str) -> None:
    """A row for MARINA + PermK, and one for EF21 + TopK."""
    data, loaded, rows = "mnist" if available("mnist") else "sample", ProblemCache(), []
    for method, compressor in (("marina", "permk"), ("ef21", "topk")):
        one_experiment = tables(data, method, compressor)
        elapsed, least = turns(
            lambda one_experiment=one_experiment: later_round_seconds(one_experiment, loaded),  # type: ignore[misc]
            lambda method=method: products(data, method == "ef21"),  # type: ignore[misc]
        )
        what = f"{method.upper()} + {compressor} round, autoencoder on {data}, n = {SIZES[data][0]}"
        rows.append(result(what, elapsed / 1e3, least / 1e3, "ms", "<= 2"))
    write(rows, path)


if __name__ == "__main__":
    main(sys.argv[1])
