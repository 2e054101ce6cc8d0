"""The experiments that all peers run, and their data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.peers import loops
from mpisim.problems.data.find import available
from mpisim.problems.data.prepared import DataOptions, load_shards, prepare

K, LEVELS, L2, P, ALPHA = 10, 1, 1e-3, 0.08, 0.1
MARINA, DIANA = "MARINA + RandK-10", "DIANA + QSGD"
FEDERATED = [
    f"{method}, {data}, n = {n:,}"
    for data, n in (("w8a", 142), ("a9a", 1000))
    for method in ("GD", "FedAvg")
]
STEPS, BATCH = 5, 32  # of FedAvg
LOG_EVERY = 10
TABLES: dict[str, dict[str, Any]] = {
    MARINA: {
        "problem": {"name": "nonconvex-loss", "data": "a9a", "workers": 5, "bias": True},
        "method": {"name": "marina", "stepsize": 1.0, "p": P},
        "compressor": {"name": "randk", "k": K},
    },
    DIANA: {
        "problem": {"name": "logistic", "data": "splice", "workers": 6, "l2": L2},
        "method": {"name": "diana", "stepsize": 0.1, "alpha": ALPHA},
        "compressor": {"name": "qsgd", "s": LEVELS},
    },
}


for name in FEDERATED:
    method, data, workers = name.replace(",", "").replace(" n =", "").split()
    keys = {"name": "gd", "stepsize": 1.0}
    if method == "FedAvg":
        keys = {"name": "fedavg", "stepsize": 1.0, "local_steps": STEPS, "batch": BATCH}
    problem = {"name": "logistic", "data": data, "workers": int(workers), "l2": L2}
    TABLES[name] = {"problem": problem, "method": keys}


def tables(name: str, data: str = "", **run: object) -> dict:
    """Of an experiment; ``data`` replaces its data set, as the sample does if that is not here."""
    known = TABLES[name]
    usual = known["problem"]["data"]
    chosen = data or (usual if available(usual) else "sample")
    problem = known["problem"] | {"data": chosen}
    if name in FEDERATED and chosen == "sample":
        problem["workers"] = 10
    return known | {"problem": problem, "run": run}


def rows(problem: dict) -> tuple[sparse.csr_matrix, np.ndarray]:
    """The rows (N, d) and labels of all workers, one block after another."""
    options = DataOptions(problem["data"], problem["workers"], bias=problem.get("bias", False))
    shards = load_shards(prepare(options), 0, options.workers)
    used = shards.stops[-1]
    shape = shards.labels.size, shards.features
    a = sparse.csr_matrix((shards.data, shards.indices, shards.indptr), shape)
    return a[:used], shards.labels[:used]


def loop(name: str, tables: dict, draws: loops.Draws) -> Iterator[np.ndarray]:
    """x^1, x^2, ... by the plain loop."""
    problem, gamma = tables["problem"], tables["method"]["stepsize"]
    (a, y), n = rows(problem), problem["workers"]
    if name in FEDERATED:
        keys = tables["method"]
        steps, batch = keys.get("local_steps", 1), keys.get("batch")
        return loops.fedavg(a, y, n, L2, gamma, steps, batch, draws)
    if name == MARINA:
        return loops.marina(loops.nonconvex_gradients(a, y, n), a.shape[1], gamma, P, K, draws)
    gradients = loops.logistic_gradients(a.toarray(), y, n, L2)
    return loops.diana(gradients, a.shape[1], gamma, ALPHA, LEVELS, draws)
