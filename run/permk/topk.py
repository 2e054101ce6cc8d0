"""A.1: how many bits EF21 with TopK needs, by K; K = d, which the theory likes best, is dense."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import cycle
from typing import Any

from mpisim.analysis import panels, style
from mpisim.analysis.claims import Claim, state
from mpisim.analysis.curves import GRADIENT
from mpisim.analysis.study import BestSteps, best_steps
from mpisim.runs.log.reader import Log

from .autoencoder import BESIDE
from .comparison import against, sayings
from .quadratic import BITS_LOG as BITS
from .quadratic import SENT

SAYING = sayings("quadratic")["small_k"]
DASHES = ["-", (0, (4, 1.5)), (0, (1.2, 1.2)), (0, (5, 1, 1, 1))]
MUCH_SMALLER = 10  # K << d: at most a tenth
Groups = dict[tuple[float, int], BestSteps]  # by noise and K


def tuned(logs: list[Log]) -> Groups:
    """The best steps of each K: the fewest bits to the target that all K reach."""
    groups: Groups = {}
    for steps in best_steps(logs, BITS):
        config = steps.logs[0].config
        groups[float(config["problem"]["noise"]), int(config["compressor"]["k"])] = steps
    return dict(sorted(groups.items()))


def draw(logs: list[Log]) -> Any:
    """|grad f|^2 over bits, a panel for each noise: the best step of each K."""
    groups = tuned(logs)
    noises, sizes = sorted({noise for noise, _ in groups}), sorted({k for _, k in groups})
    looks = dict(zip(sizes, zip(cycle(style.COLOURS), cycle(DASHES), strict=False), strict=False))

    def fill(panel: Any, _: str, noise: float) -> None:
        for (of, k), steps in groups.items():
            if of == noise:
                label = f"×{steps.step:g}"
                panels.curve(panel, steps.logs, BITS, GRADIENT, *looks[k], label=label)
        panels.dress(panel, BITS, GRADIENT, "bits per worker, without indices")
        panel.legend(fontsize=7, **BESIDE)

    entries = panels.entries_of({f"K = {k}": look for k, look in looks.items()})
    titles, labels = [f"noise {noise:g}" for noise in noises], [GRADIENT.label(logs[0])]
    return panels.matrix([""], noises, fill, labels=labels, titles=titles, entries=entries)


def claims(logs: list[Log]) -> Iterator[Claim]:
    """Each K of at most a tenth of d against K = d."""
    evidence, groups = [], tuned(logs)
    for (noise, k), steps in groups.items():
        d = int(steps.logs[0].attrs["dimension"])
        if k * MUCH_SMALLER <= d and (noise, d) in groups:
            where, both = f"K = {k}, noise {noise:g}", [steps, groups[noise, d]]
            if exact := noise == 0:  # all seeds have the same task, and EF21 draws nothing
                both = [dataclasses.replace(one, steps=_first(one.steps)) for one in both]
            evidence.append(against(where, both, (BITS, SENT), word="much", exact=exact))
    yield state("TopK with K << d needs much fewer bits than with K = d", *SAYING, evidence)


def _first(steps: dict[float, list[Log]]) -> dict[float, list[Log]]:
    return {step: logs[:1] for step, logs in steps.items()}
