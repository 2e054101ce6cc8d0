"""Measures what the published MARINA code's deviations from the paper change, for figures.py.

In that code all workers draw the same coordinates, and DIANA steps with the mean of the shifts.
Both are run here beside the paper's algorithms. The y axis of its figures and its VR-DIANA are
evaluated afterwards.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import h5py
import numpy as np

from mpisim.analysis.claims import needed
from mpisim.analysis.curves import ROUNDS as ROUND
from mpisim.comm.communicators import OneProcess
from mpisim.compressors import make
from mpisim.compressors.base import compressor
from mpisim.compressors.sparse import RandK
from mpisim.core.files import write_json
from mpisim.core.rng import Draw, Streams
from mpisim.methods.estimators.base import estimator
from mpisim.methods.estimators.diana import Diana
from mpisim.runs.experiment import parse
from mpisim.runs.log.reader import Log, read
from mpisim.runs.setup import Setup
from mpisim.runs.sweep.executor import sweep
from mpisim.runs.sweep.grid import expand
from mpisim.wire.base import Precision
from mpisim.wire.sparse import SeededForm

from .figures import TABLES, Table

DATA = {"mushrooms": 3.3891e-6, "a9a": 2.31075e-6}  # with l2 = 1e-6 L
COUNTS, SEEDS, N = (1, 10), (1, 2, 3, 4, 5), 5
CELLS = [(data, k) for data in DATA for k in COUNTS]
LONG = {"marina": (0, 10, 100, 1000, 10000), "vr-diana": (1000, 10000)}
VARIANTS = {
    "MARINA": ("marina", "randk"),
    "MARINA, alike": ("marina", "randk-alike"),
    "DIANA": ("diana", "randk"),
    "DIANA, alike": ("diana", "randk-alike"),
    "DIANA, by shifts": ("diana-by-shifts", "randk"),
}


@compressor("randk-alike")
class AlikeRandK(RandK):
    """RandK with the same coordinates at all workers: those that worker 0 draws."""

    def form(self, draw) -> SeededForm:
        rows = np.repeat(draw.block(0, 1).subsets(self.d, self.k), draw.workers, axis=0)
        return SeededForm.of_rows(self.d, self.precision, rows, self.d / self.k)


@estimator("diana-by-shifts")
class DianaByShifts(Diana):
    """The published DIANA: workers send h_i^{k+1}, and the server steps with their mean."""

    def estimate(self, x: np.ndarray) -> np.ndarray:
        super().estimate(x)  # sends m_i, which is charged, and sets h to h^{k+1}
        return self.star.broadcast(self.h)


def measure(folder: Path, rounds: int) -> None:
    """FOLDER/tables.json: tables as lists of rows, from runs of ``rounds`` rounds in FOLDER."""
    points = sweep(folder, grid(rounds), OneProcess())  # type: ignore[arg-type]
    logs = [read(Path(point.log)) for point in points]
    tables = [variants(logs), variances(), local_norms(logs), one_direction(logs)]
    write_json(folder / TABLES, tables)


def grid(length: int) -> list[dict]:
    """The points: variants x data x K x seeds; long runs of MARINA and VR-DIANA."""
    base = {
        "problem": {"name": "nonconvex-loss", "workers": N, "bias": True},
        "method": {"stepsize": "theory", "smoothness": "published"},
        "run": {"rounds": length},
    }
    data = [{"problem": {"data": name, "l2": l2}} for name, l2 in DATA.items()]
    counts = {"data": data, "compressor": {"k": list(COUNTS)}}
    points = []
    for method, name in VARIANTS.values():
        names = {"name": method.removesuffix("-by-shifts"), "estimator": method}
        change: dict = {"how": [{"method": names, "compressor": {"name": name}}]}
        points += expand(base, counts | change | {"run": {"seed": list(SEEDS)}})
    for method, rounds in LONG.items():
        settings: dict = {"name": method} | ({"batch": 0.01} if method.startswith("vr") else {})
        change = {"how": [{"method": settings, "compressor": {"name": "randk"}}]}
        change["run"] = {"rounds": list(rounds), "log_every": [1000]}
        points += expand(base, counts | change)
    return points


def pick(logs: list[Log], data: str, k: int, method: str, name: str, **run: int) -> list[Log]:
    """The logs of a setting; ``run`` are keys of its table."""
    return [
        log
        for log in logs
        if log.config["problem"]["data"] == data
        and log.config["compressor"] | {"k": k, "name": name} == log.config["compressor"]
        and log.config["method"]["estimator"] == method
        and run.items() <= log.config["run"].items()
    ]


def variants(logs: list[Log]) -> Table:
    """The rounds that a deviation costs, and the gradient norm at the end."""
    rows: Table = [["rounds to a common level", "relative", "|grad f(x^T)|^2", "spread"]]
    for data, k in CELLS:
        for name, pair in VARIANTS.items():
            proper = pair[0].removesuffix("-by-shifts"), "randk"
            runs, theorem = (pick(logs, data, k, *p, log_every=1) for p in (pair, proper))
            # that all reached
            level = max(r.column("grad_norm_sq").min() for r in (*runs, *theorem))
            one, other = (np.median([needed(r, ROUND, level) for r in s]) for s in (runs, theorem))
            last = np.log([run.column("grad_norm_sq")[-1] for run in runs])
            ends = np.exp(last.mean()), np.exp(last.std(ddof=1))
            rows.append([f"{data}, K = {k}, {name}", one / other, *ends])
    return rows


def variances() -> Table:
    """E|mean C_i(v_i) - mean v|^2 / |mean v|^2 at v_i = grad f_i(0)."""
    rows: Table = [["error of the mean message", "independent", "alike", "ratio"]]
    for data, k in CELLS:
        v = problem(data).gradients(np.zeros(problem(data).d))
        errors = [_error({"name": name, "k": k}, v) for name in ("randk", "randk-alike")]
        rows.append([f"{data}, K = {k}", *errors, errors[1] / errors[0]])
    return rows


def _error(table: dict, v: np.ndarray, rounds: int = 4000) -> float:
    c = make(table).bind(v.shape[1], N, Precision(np.dtype("float64"), np.dtype("float64")))
    mean, streams = v.mean(axis=0), Streams(1)
    draws = (Draw(streams, "up", k, 0, N) for k in range(rounds))
    errors = [np.sum((c.compress(v, draw).total() / N - mean) ** 2) for draw in draws]
    return float(np.mean(errors) / (mean @ mean))


def local_norms(logs: list[Log]) -> Table:
    """The published y axis, (1/n) sum |grad f_i(x)|^2, at iterates of MARINA with K = 10."""
    rows: Table = [["MARINA, K = 10", "|grad f(x)|^2", "mean |grad f_i(x)|^2", "ratio"]]
    for data in DATA:
        for rounds in LONG["marina"]:
            run = pick(logs, data, 10, "marina", "randk", rounds=rounds, log_every=1000)[0]
            with h5py.File(run.path, "r") as file:
                g = problem(data).gradients(file["final/x"][:])
            y, local = square(g), float(np.mean(np.sum(g**2, axis=1)))
            rows.append([f"{data}, round {rounds}", y, local, local / y])
    return rows


def one_direction(logs: list[Log]) -> Table:
    """VR-DIANA, and the published one, whose iterates are x^k = -k gamma grad f(0)."""
    rows: Table = [["|grad f(x^k)|^2, f(x^k)", "VR-DIANA", "published", "f", "f, published"]]
    for data, k in CELLS:
        f = problem(data)
        start = f.gradients(np.zeros(f.d)).mean(axis=0)
        for rounds in LONG["vr-diana"]:
            run = pick(logs, data, k, "vr-diana", "randk", rounds=rounds)[0]
            x = -rounds * run.attrs["stepsize"] * start
            norm, loss = (run.column(y)[-1] for y in ("grad_norm_sq", "loss"))
            there = square(f.gradients(x)), loss, f.losses(x).mean()
            rows.append([f"{data}, K = {k}, round {rounds}", norm, *there])
    return rows


def square(g: np.ndarray) -> float:
    """|(1/n) sum g_i|^2 of g, shape (n, d)."""
    mean = g.mean(axis=0)
    return float(mean @ mean)


@cache
def problem(data: str):
    """The figure's problem, loaded here for all workers."""
    table = {"name": "nonconvex-loss", "data": data, "l2": DATA[data], "bias": True, "workers": N}
    tables = {"problem": table, "method": {"name": "gd", "stepsize": 1.0}, "run": {"rounds": 0}}
    return Setup(parse(tables), OneProcess()).problem  # type: ignore[arg-type]
