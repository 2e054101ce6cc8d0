"""Figures 1 and 3 to 7: quadratic tasks, each method with its best steps."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from mpisim.analysis import panels, style
from mpisim.analysis.curves import GRADIENT, Axis, over_seeds
from mpisim.analysis.study import BestSteps
from mpisim.problems.quadratic import Quadratic
from mpisim.runs.log.reader import Log
from mpisim.theory import permk_tables

from . import comparison

METHODS = {"randk": "MARINA, RandK", "permk": "MARINA, PermK", "topk": "EF21, TopK"}
LOOKS: dict[str, tuple[str, Any]] = {
    "randk": (style.COLOURS[1], (0, (1.2, 1.2))),
    "permk": (style.COLOURS[2], "-"),
    "topk": (style.COLOURS[0], (0, (4, 1.5))),
}
# Bits that a worker has sent as the paper charges them, values without indices; and all of them.
BITS, SENT = Axis("paper_bits_up", log=False), Axis("bits_up", log=False)
BITS_LOG = Axis("paper_bits_up", log=True)  # for few workers, whose large shares fall at once
TITLE = "the steps that are best to where all three methods get; claims compare two at a time"
FEW = 10
FAR = 1e-4  # of |grad f(x^0)|^2: a step that ends below it is tolerated
TIGHT: dict[str, Any] = {"handlelength": 1.6, "borderaxespad": 0.1, "labelspacing": 0.2}
TIGHT |= {"columnspacing": 0.7, "handletextpad": 0.3, "framealpha": 0.7}


Task = tuple[int, float]  # n, noise
Groups = dict[Task, dict[str, BestSteps]]


def tuned(logs: list[Log], names: Collection[str]) -> Groups:
    """{(n, noise): {compressor: its steps, the best first}}, by n and noise."""
    return comparison.tuned(logs, names, task_of, BITS)


def task_of(log: Log) -> Task:
    """n and the noise of a run."""
    problem = log.config["problem"]
    return int(problem["workers"]), float(problem["noise"])


def _share(logs: list[Log]) -> float:
    """|grad f|^2 at the end over that at the start, the largest of the seeds."""
    return max(float(values[-1] / values[0]) for values in map(GRADIENT.values, logs))


def communication(log: Log, compressor: str, table: int) -> float:
    """What Table 4 has for the task of a run, without Delta^0 / epsilon; or Table 6, under PL."""
    keys = {key: value for key, value in log.config["problem"].items() if key != "name"}
    keys["lambda_"] = keys.pop("lambda")
    task = Quadratic(**keys)
    task.load(log.n, 0, log.n, int(log.attrs["seed"]), np.dtype(np.float64))
    known, d = task.closed_form, task.dimension
    L_x = known.L_pm if compressor == "permk" else known.L_plus
    mu = task.lambda_ if table == 6 else None
    return permk_tables.communication(compressor, log.n, d, known.L, L_x, mu)


def tolerated(steps: BestSteps | None) -> float:
    """The largest of the steps that end below ``FAR`` |grad f(x^0)|^2, 0 without one."""
    far = (logs for logs in (steps.steps if steps else {}).values() if _share(logs) <= FAR)
    return max((float(logs[0].attrs["stepsize"]) for logs in far), default=0.0)


def tolerates_all(steps: BestSteps | None) -> bool:
    """Whether the largest step that was run is tolerated: a larger one may be, too."""
    largest = steps.steps.get(steps.tried[-1]) if steps else None
    return largest is not None and _share(largest) <= FAR


def draw(shown: dict[str, int], logs: list[Log]) -> Any:
    """A row for each n, a column for each noise; ``shown`` best steps of each compressor."""
    groups = tuned(logs, shown)
    sizes = sorted({n for n, _ in groups})
    noises = sorted({noise for _, noise in groups})

    def fill(panel: Any, n: int, noise: float) -> None:
        _panel(panel, groups.get((n, noise), {}), shown, BITS_LOG if n <= FEW else BITS)
        if n == sizes[-1]:
            panel.set_xlabel("bits per worker, without indices")

    labels = [f"n = {n}\n{GRADIENT.label(logs[0])}" for n in sizes]
    titles = [f"noise {noise:g}" for noise in noises]
    entries = [(METHODS[name], _look(name, 0)) for name in shown]
    title = TITLE if len(shown) > 2 else ""
    return panels.matrix(
        sizes, noises, fill, labels=labels, titles=titles, entries=entries, title=title
    )


def _panel(panel: Any, methods: dict[str, BestSteps], shown: dict[str, int], bits: Axis) -> None:
    """The best steps, the first drawn strongest, with their multiples in the corner.

    Of several seeds the mean, and around the best step the band.
    """
    if not methods:
        panel.set_axis_off()
        return
    handles = []
    for name, most in shown.items():
        runs = list(methods[name].steps.items())[:most] if name in methods else []
        for place, (multiple, logs) in reversed(list(enumerate(runs))):
            drawn, look = over_seeds(logs, bits, GRADIENT), _look(name, place)
            handles += panel.plot(drawn.x, drawn.y, **look, label=f"×{multiple:g}")
            if drawn.low is not None and place == 0:
                panel.fill_between(drawn.x, drawn.low, drawn.high, color=look["color"], alpha=0.15)
    panels.dress(panel, bits, GRADIENT, "")
    if absent := [METHODS[name] for name in shown if name not in methods]:
        panel.text(0.03, 0.03, f"no {', '.join(absent)}", transform=panel.transAxes, fontsize=7)
    panel.set_ylim(bottom=max(panel.get_ylim()[0], 1e-13))
    handles.sort(key=lambda line: (line.get_color(), float(line.get_label()[1:])))
    panel.legend(handles=handles, fontsize=6, loc="upper right", ncols=len(shown), **TIGHT)


def _look(name: str, place: int) -> dict[str, Any]:
    colour, dash = LOOKS[name]
    alpha, linewidth = ((1.0, 1.6), (0.55, 1.1), (0.3, 1.1))[place]
    return {"color": colour, "linestyle": dash, "alpha": alpha, "linewidth": linewidth}
