"""A.1: how many bits EF21 with TopK needs, by K; K = d, which the theory likes best, is dense."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
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
Groups = dict[float, dict[int, BestSteps]]  # {noise: {K: its steps}}


def tuned(logs: list[Log]) -> Groups:
    """The best steps of each K: the fewest bits to the target that all K reach."""
    groups: Groups = {}
    for steps in best_steps(logs, BITS):
        config = steps.logs[0].config
        noise, k = float(config["problem"]["noise"]), int(config["compressor"]["k"])
        groups.setdefault(noise, {})[k] = steps
    return {noise: dict(sorted(by_k.items())) for noise, by_k in sorted(groups.items())}


def draw(logs: list[Log]) -> Any:
    """|grad f|^2 over bits, a panel for each noise: the best step of each K."""
    groups = tuned(logs)
    sizes = sorted({k for by_k in groups.values() for k in by_k})
    looks = {
        k: (style.COLOURS[i % len(style.COLOURS)], DASHES[i % len(DASHES)])
        for i, k in enumerate(sizes)
    }

    def fill(panel: Any, _: str, noise: float) -> None:
        for k, steps in groups[noise].items():
            label = f"×{steps.step:g}"
            panels.curve(panel, steps.logs, BITS, GRADIENT, *looks[k], label=label)
        panels.dress(panel, BITS, GRADIENT, "bits per worker, without indices")
        panel.legend(fontsize=7, **BESIDE)

    return panels.matrix(
        [""],
        list(groups),
        fill,
        labels=[GRADIENT.label(logs[0])],
        titles=[f"noise {noise:g}" for noise in groups],
        entries=panels.entries_of({f"K = {k}": looks[k] for k in sizes}),
    )


def claims(logs: list[Log]) -> Iterator[Claim]:
    """Each K of at most a tenth of d against K = d."""
    evidence = []
    for noise, by_k in tuned(logs).items():
        d = int(next(iter(by_k.values())).logs[0].attrs["dimension"])
        for k in (k for k in by_k if k * MUCH_SMALLER <= d and d in by_k):
            where, both = f"K = {k}, noise {noise:g}", [by_k[k], by_k[d]]
            if exact := noise == 0:  # all seeds have the same task, and EF21 draws nothing
                both = [dataclasses.replace(one, steps=_first(one.steps)) for one in both]
            one = against(where, both, (BITS, SENT), word="much", exact=exact)
            evidence.append(one)
    yield state("TopK with K << d needs much fewer bits than with K = d", *SAYING, evidence)


def _first(steps: dict[float, list[Log]]) -> dict[float, list[Log]]:
    return {step: logs[:1] for step, logs in steps.items()}
