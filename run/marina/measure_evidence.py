"""Numbers for README.md: what the published MARINA code's deviations from the paper change.

    mpirun -n 2 python run/marina/measure_evidence.py

In that code all workers draw the same coordinates, and DIANA steps with the mean of the shifts.
Both are run here beside the paper's algorithms, in logs/marina-fig1-evidence. The y axis of its
figures and its VR-DIANA are evaluated afterwards.
"""

from __future__ import annotations

import shlex
import sys
from functools import cache
from pathlib import Path

import h5py
import numpy as np
from mpi4py import MPI

from mpisim.analysis.claims import needed
from mpisim.analysis.curves import ROUNDS as ROUND
from mpisim.compressors import make
from mpisim.compressors.base import compressor
from mpisim.compressors.sparse import RandK
from mpisim.core.rng import Draw, Streams
from mpisim.methods.estimators.base import estimator
from mpisim.methods.estimators.diana import Diana
from mpisim.runs.experiment import parse
from mpisim.runs.host import guarded
from mpisim.runs.log.reader import Log, read
from mpisim.runs.setup import Setup
from mpisim.runs.sweep.executor import sweep
from mpisim.runs.sweep.grid import expand
from mpisim.wire.base import Precision
from mpisim.wire.sparse import SeededForm

FOLDER = Path("logs/marina-fig1-evidence")
DATA = {"mushrooms": 3.3891e-6, "a9a": 2.31075e-6}  # with l2 = 1e-6 L
COUNTS, SEEDS, ROUNDS, N = (1, 10), (1, 2, 3, 4, 5), 1000, 5
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


def grid() -> list[dict]:
    """The points: variants x data x K x seeds; long runs of MARINA and VR-DIANA."""
    base = {
        "problem": {"name": "nonconvex-loss", "workers": N, "bias": True},
        "method": {"stepsize": "theory", "smoothness": "published"},
        "run": {"rounds": ROUNDS},
    }
    data = [{"problem": {"data": name, "l2": l2}} for name, l2 in DATA.items()]
    counts = {"data": data, "compressor": {"k": list(COUNTS)}}
    points = []
    for method, name in VARIANTS.values():
        names = {"name": method.removesuffix("-by-shifts"), "estimator": method}
        change = {"how": [{"method": names, "compressor": {"name": name}}]}
        points += expand(base, counts | change | {"run": {"seed": list(SEEDS)}})
    for method, rounds in LONG.items():
        own: dict = {"name": method} | ({"batch": 0.01} if method.startswith("vr") else {})
        change = {"how": [{"method": own, "compressor": {"name": "randk"}}]}
        points += expand(
            base, counts | change | {"run": {"rounds": list(rounds), "log_every": [1000]}}
        )
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


def variants(logs: list[Log]) -> None:
    """The rounds that a deviation costs, and the gradient norm after 1000 rounds."""
    header("", "rounds, relative", "|grad f(x^T)|^2", "spread")
    for data, k in CELLS:
        for name, pair in VARIANTS.items():
            proper = pair[0].removesuffix("-by-shifts"), "randk"
            runs, own = (
                pick(logs, data, k, *p, rounds=ROUNDS, log_every=1) for p in (pair, proper)
            )
            level = max(r.column("grad_norm_sq").min() for r in (*runs, *own))  # that all reached
            mine, theirs = (np.median([needed(r, ROUND, level) for r in s]) for s in (runs, own))
            last = np.log([run.column("grad_norm_sq")[-1] for run in runs])
            ends = np.exp(last.mean()), np.exp(last.std(ddof=1))
            line(f"{data}, K = {k}, {name}", mine / theirs, *ends)


def variances() -> None:
    """E|mean C_i(v_i) - mean v|^2 / |mean v|^2 at v_i = grad f_i(0)."""
    header("error of the mean message", "independent", "alike", "ratio")
    for data, k in CELLS:
        v = problem(data).gradients(np.zeros(problem(data).d))
        errors = [_error({"name": name, "k": k}, v) for name in ("randk", "randk-alike")]
        line(f"{data}, K = {k}", *errors, errors[1] / errors[0])


def _error(table: dict, v: np.ndarray, rounds: int = 4000) -> float:
    c = make(table).bind(v.shape[1], N, Precision(np.dtype("float64"), np.dtype("float64")))
    mean, streams = v.mean(axis=0), Streams(1)
    draws = (Draw(streams, "up", k, 0, N) for k in range(rounds))
    errors = [np.sum((c.compress(v, draw).total() / N - mean) ** 2) for draw in draws]
    return float(np.mean(errors) / (mean @ mean))


def local_norms(logs: list[Log]) -> None:
    """The published y axis, (1/n) sum |grad f_i(x)|^2, at iterates of MARINA with K = 10."""
    header("MARINA, K = 10", "|grad f(x)|^2", "mean |grad f_i(x)|^2", "ratio")
    for data in DATA:
        for rounds in LONG["marina"]:
            run = pick(logs, data, 10, "marina", "randk", rounds=rounds, log_every=1000)[0]
            with h5py.File(run.path, "r") as file:
                g = problem(data).gradients(file["final/x"][:])
            y, local = square(g), float(np.mean(np.sum(g**2, axis=1)))
            line(f"{data}, round {rounds}", y, local, local / y)


def one_direction(logs: list[Log]) -> None:
    """VR-DIANA, and the published one, whose iterates are x^k = -k gamma grad f(0)."""
    header("|grad f(x^k)|^2, f(x^k)", "VR-DIANA", "-k gamma grad f(0)", "f", "f there")
    for data, k in CELLS:
        own = problem(data)
        start = own.gradients(np.zeros(own.d)).mean(axis=0)
        for rounds in LONG["vr-diana"]:
            run = pick(logs, data, k, "vr-diana", "randk", rounds=rounds)[0]
            x = -rounds * run.attrs["stepsize"] * start
            norm, loss = (run.column(y)[-1] for y in ("grad_norm_sq", "loss"))
            there = square(own.gradients(x)), loss, own.losses(x).mean()
            line(f"{data}, K = {k}, round {rounds}", norm, *there)


def header(text: str, *words: str) -> None:
    """The first line of a table."""
    print()
    line(text, *words)


def line(text: str, *cells: float | str) -> None:
    """A line of a table."""
    shown = (f"{cell:>22}" if isinstance(cell, str) else f"{cell:22.4g}" for cell in cells)
    print(f"{text:34}" + "".join(shown))


def square(g: np.ndarray) -> float:
    """|(1/n) sum g_i|^2 of g, shape (n, d)."""
    mean = g.mean(axis=0)
    return float(mean @ mean)


@cache
def problem(data: str):
    """The figure's problem, loaded here for all workers."""
    table = {"name": "nonconvex-loss", "data": data, "l2": DATA[data], "bias": True, "workers": N}
    tables = {"problem": table, "method": {"name": "gd", "stepsize": 1.0}, "run": {"rounds": 0}}
    return Setup(parse(tables), MPI.COMM_SELF).problem


def body(comm) -> int:
    """Run what is missing; rank 0 prints the numbers."""
    points = sweep(FOLDER, grid(), comm, shlex.join(sys.argv))
    if comm.rank == 0:
        logs = [read(Path(point.log)) for point in points]
        variants(logs)
        variances()
        local_norms(logs)
        one_direction(logs)
    return 0


if __name__ == "__main__":
    sys.exit(guarded(body))
