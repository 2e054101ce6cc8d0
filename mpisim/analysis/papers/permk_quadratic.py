"""What Figures 1 and 3 to 7 of the PermK paper share: quadratic tasks, and steps that are tuned."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from mpisim.analysis import panels, style
from mpisim.analysis.claims import Claim, fewer, number
from mpisim.analysis.curves import Axis
from mpisim.analysis.tune import best
from mpisim.runs.log.reader import Log

MULTIPLES = [2**i for i in range(20)]  # the published runs'
SCALES: dict[str, list[str]] = {
    "quick": [],
    "paper": ["run.rounds=20000", "run.log_every=100", f"sweep.multiples={MULTIPLES}"],
}
NAMES = {"randk": "RandK", "permk": "PermK", "topk": "TopK"}
METHODS = {"randk": "MARINA, RandK", "permk": "MARINA, PermK", "topk": "EF21, TopK"}
LOOKS: dict[str, tuple[str, Any]] = {
    "randk": (style.COLOURS[1], (0, (1.2, 1.2))),
    "permk": (style.COLOURS[2], "-"),
    "topk": (style.COLOURS[0], (0, (4, 1.5))),
}
# What a worker has sent as the paper charges it: values alone, no indices.
BITS = Axis("paper_bits_up", log=False)
GRADIENT = Axis("grad_norm_sq", log=True)
HOMOGENEOUS = 0.2  # noise up to which the paper has L_± <= 0.21
SOME, MANY = 1000, 10000
FAR = 1e-4  # of |grad f(x^0)|^2: a step that ends below it is tolerated


@dataclasses.dataclass(frozen=True)
class Tuned:
    """A method on a task: {multiple of the theory step: run}, the best first, of those steps with
    which the run neither diverged nor ended above |grad f(x^0)|^2."""

    runs: dict[float, Log]

    @property
    def best(self) -> Log:
        """The run with the best step."""
        return next(iter(self.runs.values()))

    @property
    def multiple(self) -> float:
        """The best multiple."""
        return next(iter(self.runs))

    @property
    def tolerated(self) -> float:
        """The largest of the steps that end below ``FAR`` |grad f(x^0)|^2, 0 without one."""
        far = (log for log in self.runs.values() if _share(log) <= FAR)
        return max((float(log.attrs["stepsize"]) for log in far), default=0.0)


Task = tuple[int, float]  # n, noise
Found = dict[Task, dict[str, Tuned]]


def tuned(logs: list[Log]) -> Found:
    """{(n, noise): {compressor: runs}}, by n and noise; the best step has the smallest mean of
    log10 |grad f(x^k)|^2 over the last 90% of the rows, as in the published code."""
    by_path = {str(log.path): log for log in logs}
    found: Found = {}
    for choice in best(log.path for log in logs):
        scored = [c for c in choice.candidates if c.score is not None]
        scored.sort(key=lambda c: (c.score, c.step))
        runs = {c.step: by_path[c.logs[0]] for c in scored if _share(by_path[c.logs[0]]) < 1}
        if runs:
            config = next(iter(runs.values())).config
            task = int(config["problem"]["workers"]), float(config["problem"]["noise"])
            found.setdefault(task, {})[str(config["compressor"]["name"])] = Tuned(runs)
    return {task: found[task] for task in sorted(found)}


def _share(log: Log) -> float:
    """|grad f|^2 at the end over that at the start."""
    values = GRADIENT.values(log)
    return float(values[-1] / values[0])


def name_of(task: Task) -> str:
    """``n = 10, noise 0.05``."""
    return f"n = {task[0]}, noise {task[1]:g}"


def grid(logs: list[Log], shown: dict[str, int]) -> Any:
    """A row for each n, a column for each noise; so many of the best steps of each compressor."""
    found = tuned(logs)
    sizes = list(dict.fromkeys(n for n, _ in found))
    noises = sorted({noise for _, noise in found})
    with panels.styled():
        figure, places = panels.grid(len(sizes), len(noises))
        for row, n in zip(places, sizes, strict=True):
            for panel, noise in zip(row, noises, strict=True):
                _panel(panel, found.get((n, noise), {}), shown)
            row[0].set_ylabel(f"n = {n}\n{GRADIENT.label(logs[0])}")
        for panel, noise in zip(places[0], noises, strict=True):
            panel.set_title(f"noise {noise:g}")
        for panel in places[-1]:
            panel.set_xlabel("bits sent per worker")
        panels.legend(figure, [(METHODS[name], _look(name, 0)) for name in shown])
    return figure


def _panel(panel: Any, own: dict[str, Tuned], shown: dict[str, int]) -> None:
    """The best steps, the best of them strongest; their multiples stand in the corner."""
    if not own:
        panel.set_axis_off()
        return
    handles = []
    for name, most in shown.items():
        runs = list(own[name].runs.items())[:most] if name in own else []
        for place, (multiple, log) in reversed(list(enumerate(runs))):
            xs, ys = BITS.values(log), GRADIENT.values(log)
            handles += panel.plot(xs, ys, **_look(name, place), label=f"×{multiple:g}")
    panels.dress(panel, BITS, GRADIENT, "")
    panel.set_ylim(bottom=max(panel.get_ylim()[0], 1e-13))
    handles.sort(key=lambda line: (line.get_color(), float(line.get_label()[1:])))
    panel.legend(handles=handles, fontsize=6, loc="upper right", ncols=len(shown), **TIGHT)


TIGHT: dict[str, Any] = {
    "handlelength": 1.6,
    "borderaxespad": 0.1,
    "labelspacing": 0.2,
    "columnspacing": 0.7,
    "handletextpad": 0.3,
    "framealpha": 0.7,
}


def _look(name: str, place: int) -> dict[str, Any]:
    colour, dash = LOOKS[name]
    return {
        "color": colour,
        "linestyle": dash,
        "alpha": (1.0, 0.55, 0.3)[place],
        "linewidth": 1.6 if place == 0 else 1.1,
    }


def compared(found: Found, task: Task, less: str, more: str, source: str) -> Claim:
    """That ``less`` needs fewer bits than ``more`` on a task, each with its best step."""
    text = f"{name_of(task)}: {METHODS[less]} needs fewer bits than {METHODS[more]}"
    own = found[task]
    if less not in own or more not in own:
        return Claim(text, source, "not measured: no step of one got anywhere", False)
    claim = fewer(text, source, [own[less].best], [own[more].best], BITS)
    measured = f"{claim.measured}; steps ×{own[less].multiple:g}, ×{own[more].multiple:g}"
    details = claim.details | {name: own[name].multiple for name in (less, more)}
    return dataclasses.replace(claim, measured=measured, details=details)


def growing(found: Found, source: str) -> Iterator[Claim]:
    """That what PermK gains over RandK in bits grows with n, for each noise."""
    for noise in sorted({noise for _, noise in found}):
        sizes = [n for n, own in found if own == noise]
        gains = {n: gain(found, (n, noise)) for n in sizes}
        values = list(gains.values())
        measured = ", ".join(f"n = {n}: {number(value)} times" for n, value in gains.items())
        holds = len(values) > 1 and all(a < b for a, b in pairwise(values))
        text = f"noise {noise:g}: the more workers, the more bits PermK saves against RandK"
        yield Claim(text, source, measured, holds, {"gains": gains})


def gain(found: Found, task: Task) -> float:
    """Bits of RandK over those of PermK to their common level; NaN where it was not measured."""
    claim = compared(found, task, "permk", "randk", "")
    return float(claim.details.get("median_ratio", float("nan")))
