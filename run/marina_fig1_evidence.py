"""Numbers for docs/marina-fig1.md: what the published MARINA code's deviations change.

`mpirun -n 2 python run/marina_fig1_evidence.py`: runs MARINA and DIANA with coordinates as the
workers of that code draw them (all alike), and its DIANA (which steps with the shifts' mean),
beside the papers', in logs/marina-fig1-evidence; then evaluates its y axis and its VR-DIANA.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import numpy as np

from mpisim.cluster import guarded
from mpisim.compressors.base import compressor
from mpisim.compressors.sparse import RandK
from mpisim.config import parse
from mpisim.estimators.base import estimator
from mpisim.estimators.diana import Diana
from mpisim.figures.claims import common_level, needed, number
from mpisim.figures.curves import Axis
from mpisim.figures.read import Log, read
from mpisim.sweeps.grid import expand
from mpisim.sweeps.runner import sweep
from mpisim.wire.sparse import SeededForm

FOLDER = Path("logs/marina-fig1-evidence")
DATA = {"mushrooms": 3.3891e-6, "a9a": 2.31075e-6}  # with l2 = 1e-6 L
COUNTS, SEEDS, ROUNDS = (1, 10), (1, 2, 3, 4, 5), 1000
LONG = (0, 10, 100, 1000, 10000)
VARIANTS = {
    "MARINA": ("marina", "randk"),
    "MARINA, alike": ("marina", "randk-alike"),
    "DIANA": ("diana", "randk"),
    "DIANA, alike": ("diana", "randk-alike"),
    "DIANA by shifts": ("diana-by-shifts", "randk"),
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
        super().estimate(x)  # m_i crosses the network, as was charged; h is h^{k+1} now
        return self.star.broadcast(self.h)


def grid() -> list[dict]:
    """The points: variants x data x K x seeds, and long runs of MARINA for their last iterates."""
    base = {
        "problem": {"name": "nonconvex-loss", "workers": 5, "bias": True},
        "method": {"stepsize": "theory", "smoothness": "published"},
    }
    data = [{"problem": {"data": name, "l2": l2}} for name, l2 in DATA.items()]
    how = [
        {"method": _method(method), "compressor": {"name": name}}
        for method, name in VARIANTS.values()
    ]
    runs = {"run": {"seed": list(SEEDS), "rounds": [ROUNDS]}, "compressor": {"k": list(COUNTS)}}
    marina = [{"method": _method("marina"), "compressor": {"name": "randk", "k": 10}}]
    long = {"run": {"rounds": list(LONG), "log_every": [1000]}}
    return expand(base, {"data": data, "how": how} | runs) + expand(
        base, {"data": data, "how": marina} | long
    )


def _method(estimator: str) -> dict[str, str]:
    return {"name": estimator.partition("-")[0], "estimator": estimator}


def variants(logs: list[Log]) -> list[str]:
    """Rounds to a common level, and where 1000 rounds lead."""
    lines = [
        f"{'':40}{'rounds to a common level':>26}{'times':>8}{'|grad f(x^T)|^2':>18}{'spread':>8}"
    ]
    for data in DATA:
        for k in COUNTS:
            found = {name: _pick(logs, data, k, *pair) for name, pair in VARIANTS.items()}
            for name, runs in found.items():
                proper = found[name.split(",")[0].split(" by")[0]]
                lines.append(_line(f"{data}, K = {k}, {name}", runs, proper))
    return lines


def _pick(logs: list[Log], data: str, k: int, method: str, name: str) -> list[Log]:
    wanted = (data, method, {"name": name, "k": k}, ROUNDS)
    return [
        log
        for log in logs
        if wanted
        == (
            log.config["problem"]["data"],
            log.config["method"]["estimator"],
            log.config["compressor"],
            log.config["run"]["rounds"],
        )
        and log.config["run"]["log_every"] == 1
    ]


def _line(text: str, runs: list[Log], proper: list[Log]) -> str:
    """Against the papers' method: medians over seeds; spread is the geometric deviation."""
    level, rounds = common_level([*runs, *proper]), Axis("round", log=False)
    mine, theirs = (float(np.median([needed(r, rounds, level) for r in s])) for s in (runs, proper))
    last = np.log([run.column("grad_norm_sq")[-1] for run in runs])
    return (
        f"{text:40}{number(mine):>26}{mine / theirs:8.2f}"
        f"{np.exp(last.mean()):18.3g}{np.exp(last.std(ddof=1)):8.3f}"
    )


def local_norms(logs: list[Log]) -> list[str]:
    """The published y axis, (1/n) sum |grad f_i(x)|^2, at iterates of MARINA with K = 10."""
    lines = [f"{'':40}{'|grad f(x)|^2':>18}{'(1/n) sum |grad f_i(x)|^2':>28}{'times':>8}"]
    for data in DATA:
        for rounds in LONG:
            x = next(_last(log) for log in logs if _is_long(log, data, rounds))
            gradients = _problem(data).gradients(x)
            mean = gradients.mean(axis=0)
            y, local = float(mean @ mean), float(np.mean(np.sum(gradients**2, axis=1)))
            lines.append(f"{f'{data}, round {rounds}':40}{y:18.3g}{local:28.3g}{local / y:8.3g}")
    return lines


def _is_long(log: Log, data: str, rounds: int) -> bool:
    run = log.config["run"]
    here = log.config["problem"]["data"] == data
    return here and run["rounds"] == rounds and run["log_every"] == LONG[-2]


def _last(log: Log) -> np.ndarray:
    import h5py

    with h5py.File(log.path, "r") as file:
        return file["final/x"][:]


def one_direction() -> list[str]:
    """The published VR-DIANA stays on x = -t grad f(0): the least |grad f|^2 there."""
    lines = [f"{'':40}{'|grad f(0)|^2':>18}{'least on -t grad f(0)':>28}{'times':>8}"]
    for data in DATA:
        problem = _problem(data)
        zero = np.zeros(problem.d)
        start = problem.gradients(zero).mean(axis=0)
        squares = []
        for t in np.geomspace(1e-2, 1e6, 400):
            g = problem.gradients(-t * start).mean(axis=0)
            squares.append(float(g @ g))
        y, least = float(start @ start), min(squares)
        lines.append(f"{data:40}{y:18.3g}{least:28.3g}{least / y:8.3g}")
    return lines


def _problem(data: str):
    table = {"name": "nonconvex-loss", "data": data, "l2": DATA[data], "bias": True, "workers": 5}
    tables = {"problem": table, "method": {"name": "gd", "stepsize": 1.0}, "run": {"rounds": 0}}
    problem = parse(tables).problem
    problem.load(5, 0, 5, 1, np.dtype(np.float64))
    return problem


def body(comm) -> int:
    """Run what is missing; rank 0 prints the numbers."""
    points = sweep(FOLDER, grid(), comm, " ".join(sys.argv))
    if comm.rank == 0:
        logs = [read(Path(point.log)) for point in points]
        assert all(tomllib.loads(point.config) for point in points)
        for lines in (variants(logs), local_norms(logs), one_direction()):
            print("\n" + "\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(guarded(body))
