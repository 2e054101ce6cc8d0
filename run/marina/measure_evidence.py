"""Numbers for docs/marina-fig1.md: what the published MARINA code's deviations change.

`mpirun -n 2 python run/marina_fig1_evidence.py`: runs MARINA and DIANA with coordinates as the
workers of that code draw them (all alike), and its DIANA (which steps with the shifts' mean),
beside the papers', in logs/marina-fig1-evidence; then evaluates its y axis and its VR-DIANA.
"""

from __future__ import annotations

import sys
from pathlib import Path

import h5py
import numpy as np

from mpisim.analysis.claims import common_level, needed
from mpisim.analysis.curves import Axis
from mpisim.compressors.base import Compressor, compressor
from mpisim.compressors.sparse import RandK
from mpisim.core.rng import Draw, Streams
from mpisim.methods.estimators.base import estimator
from mpisim.methods.estimators.diana import Diana
from mpisim.runs.experiment import parse
from mpisim.runs.launch import guarded
from mpisim.runs.log.reader import Log, read
from mpisim.runs.sweep.grid import expand
from mpisim.runs.sweep.runner import sweep
from mpisim.wire.base import Precision
from mpisim.wire.sparse import SeededForm

FOLDER = Path("logs/marina-fig1-evidence")
DATA = {"mushrooms": 3.3891e-6, "a9a": 2.31075e-6}  # with l2 = 1e-6 L
COUNTS, SEEDS, ROUNDS, N = (1, 10), (1, 2, 3, 4, 5), 1000, 5
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
        super().estimate(x)  # m_i crosses the network, as was charged; h is h^{k+1} now
        return self.star.broadcast(self.h)


def grid() -> list[dict]:
    """The points: variants x data x K x seeds; long runs of MARINA and VR-DIANA."""
    base = {
        "problem": {"name": "nonconvex-loss", "workers": N, "bias": True},
        "method": {"stepsize": "theory", "smoothness": "published"},
        "run": {"rounds": ROUNDS},
    }
    data = [{"problem": {"data": name, "l2": l2}} for name, l2 in DATA.items()]
    counts = {"compressor": {"k": list(COUNTS)}}
    points = []
    for method, name in VARIANTS.values():
        names = {"name": method.removesuffix("-by-shifts"), "estimator": method}
        change = [{"method": names, "compressor": {"name": name}}]
        points += expand(base, {"data": data, "how": change, "run": {"seed": list(SEEDS)}} | counts)
    for method, rounds in LONG.items():
        batch = {"batch": 0.01} if method.startswith("vr") else {}
        change = [{"method": {"name": method} | batch, "compressor": {"name": "randk"}}]
        run = {"run": {"rounds": list(rounds), "log_every": [1000]}}
        points += expand(base, {"data": data, "how": change} | run | counts)
    return points


def pick(logs: list[Log], data: str, k: int, method: str, name: str, **run: int) -> list[Log]:
    """The logs of a setting; ``run`` are keys of its table."""
    wanted = (data, k, method, name)
    return [
        log
        for log in logs
        if wanted
        == (
            log.config["problem"]["data"],
            log.config["compressor"]["k"],
            log.config["method"]["estimator"],
            log.config["compressor"]["name"],
        )
        and run.items() <= log.config["run"].items()
    ]


def variants(logs: list[Log]) -> list[str]:
    """What a deviation costs in rounds, and where 1000 rounds lead."""
    lines = [header("", "rounds, relative", "|grad f(x^T)|^2", "spread")]
    for data in DATA:
        for k in COUNTS:
            for name, pair in VARIANTS.items():
                proper = (pair[0].removesuffix("-by-shifts"), "randk")
                runs, own = (
                    pick(logs, data, k, *p, rounds=ROUNDS, log_every=1) for p in (pair, proper)
                )
                level, rounds = common_level([*runs, *own]), Axis("round", log=False)
                mine, theirs = (
                    np.median([needed(r, rounds, level) for r in s]) for s in (runs, own)
                )
                last = np.log([run.column("grad_norm_sq")[-1] for run in runs])
                numbers = mine / theirs, np.exp(last.mean()), np.exp(last.std(ddof=1))
                lines.append(line(f"{data}, K = {k}, {name}", *numbers))
    return lines


def variances() -> list[str]:
    """E|mean C_i(v_i) - mean v|^2 / |mean v|^2 at v_i = grad f_i(0), over 4000 draws."""
    lines = [header("error of the mean message", "independent", "alike", "ratio")]
    for data in DATA:
        v = gradients(data, np.zeros(problem(data).d))
        for k in COUNTS:
            errors = [_error(kind(k), v) for kind in (RandK, AlikeRandK)]
            lines.append(line(f"{data}, K = {k}", *errors, errors[1] / errors[0]))
    return lines


def _error(c: Compressor, v: np.ndarray) -> float:
    c.bind(v.shape[1], N, Precision(np.dtype("float64"), np.dtype("float64")))
    mean, streams = v.mean(axis=0), Streams(1)
    errors = [
        np.sum((c.compress(v, Draw(streams, "up", k, 0, N)).total() / N - mean) ** 2)
        for k in range(4000)
    ]
    return float(np.mean(errors) / (mean @ mean))


def local_norms(logs: list[Log]) -> list[str]:
    """The published y axis, (1/n) sum |grad f_i(x)|^2, at iterates of MARINA with K = 10."""
    lines = [header("MARINA, K = 10", "|grad f(x)|^2", "mean |grad f_i(x)|^2", "ratio")]
    for data in DATA:
        for rounds in LONG["marina"]:
            run = pick(logs, data, 10, "marina", "randk", rounds=rounds, log_every=1000)[0]
            with h5py.File(run.path, "r") as file:
                g = gradients(data, file["final/x"][:])
            y, local = square(g), float(np.mean(np.sum(g**2, axis=1)))
            lines.append(line(f"{data}, round {rounds}", y, local, local / y))
    return lines


def one_direction(logs: list[Log]) -> list[str]:
    """VR-DIANA, and the published one, whose iterates are x^k = -k gamma grad f(0)."""
    lines = [header("|grad f(x^k)|^2, f(x^k)", "VR-DIANA", "-k gamma grad f(0)", "f", "f there")]
    for data in DATA:
        start = gradients(data, np.zeros(problem(data).d)).mean(axis=0)
        for k in COUNTS:
            for rounds in LONG["vr-diana"]:
                run = pick(logs, data, k, "vr-diana", "randk", rounds=rounds)[0]
                x = -rounds * run.attrs["stepsize"] * start
                own, loss = (run.column(y)[-1] for y in ("grad_norm_sq", "loss"))
                there, loss_there = square(gradients(data, x)), problem(data).losses(x).mean()
                text = f"{data}, K = {k}, round {rounds}"
                lines.append(line(text, own, there, loss, loss_there))
    return lines


def header(*words: str) -> str:
    """The first line of a table."""
    return f"{words[0]:34}" + "".join(f"{word:>22}" for word in words[1:])


def line(text: str, *numbers: float) -> str:
    """A line of a table."""
    return f"{text:34}" + "".join(f"{number:22.4g}" for number in numbers)


def square(g: np.ndarray) -> float:
    """|(1/n) sum g_i|^2 of g, shape (n, d)."""
    mean = g.mean(axis=0)
    return float(mean @ mean)


def gradients(data: str, x: np.ndarray) -> np.ndarray:
    """grad f_i(x) of all workers, shape (n, d)."""
    return problem(data).gradients(x)


def problem(data: str):
    """The figure's problem, loaded here for all workers."""
    table = {"name": "nonconvex-loss", "data": data, "l2": DATA[data], "bias": True, "workers": N}
    tables = {"problem": table, "method": {"name": "gd", "stepsize": 1.0}, "run": {"rounds": 0}}
    loaded = parse(tables).problem
    loaded.load(N, 0, N, 1, np.dtype(np.float64))
    return loaded


def body(comm) -> int:
    """Run what is missing; rank 0 prints the numbers."""
    points = sweep(FOLDER, grid(), comm, " ".join(sys.argv))
    if comm.rank == 0:
        logs = [read(Path(point.log)) for point in points]
        for lines in (variants(logs), variances(), local_norms(logs), one_direction(logs)):
            print("\n" + "\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(guarded(body))
