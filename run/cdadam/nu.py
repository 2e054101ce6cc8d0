"""How many claims of Figures 2 and 4 hold, for each nu and number of rounds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from mpisim.analysis import panels
from mpisim.analysis.claims import Claim, Verdict
from mpisim.runs.log.reader import Log

from . import logistic_claims
from .logistic import nu_of

SHARES = (0.25, 0.5, 0.75, 1.0)  # of the rounds
# {title: compressor, claims}
FIGURES: dict[str, tuple[str, Callable[[Iterable[Log]], Iterable[Claim]]]] = {
    "Figure 2, scaled sign": ("scaled-sign", logistic_claims.fig2),
    "Figure 4, Top-1": ("topk", logistic_claims.fig4),
}


def cut(log: Log, rounds: int) -> Log:
    """The log of a run that ends after ``rounds`` rounds."""
    rows = int(np.searchsorted(log.column("round"), rounds, side="right"))
    return dataclasses.replace(log, columns={k: v[:rows] for k, v in log.columns.items()})


def counts(logs: list[Log], title: str) -> dict[tuple[float, int], tuple[int, int]]:
    """{(nu, rounds): evidence that holds, and all} of a figure."""
    compressor, claims = FIGURES[title]
    last = max(int(log.column("round")[-1]) for log in logs)
    own = [log for log in logs if log.config["compressor"]["name"] in (compressor, "identity")]
    found = {}
    for nu in sorted({nu_of(log) for log in own}):
        for rounds in (round(share * last) for share in SHARES):
            shown = [cut(log, rounds) for log in own if nu_of(log) == nu]
            each = [one.verdict for claim in claims(shown) for one in claim.evidence]
            found[nu, rounds] = each.count(Verdict.HOLDS), len(each)
    return found


def draw(logs: list[Log]) -> Any:
    """A map for each figure: nu upwards, rounds to the right."""
    figure, drawn = panels.grid(1, len(FIGURES), (2.9, 2.4))
    for panel, title in zip(drawn[0], FIGURES, strict=True):
        found = counts(logs, title)
        nus, rounds = sorted({nu for nu, _ in found}), sorted({k for _, k in found})
        shares = np.array([[found[nu, k][0] / found[nu, k][1] for k in rounds] for nu in nus])
        panel.imshow(shares, cmap="Blues", vmin=0, vmax=1.6, origin="lower", aspect="auto")
        for (nu, k), (held, of) in found.items():
            text = f"{held}/{of}"
            panel.text(rounds.index(k), nus.index(nu), text, ha="center", va="center")
        panel.set_xticks(range(len(rounds)), [f"{k:,}" for k in rounds])
        panel.set_yticks(range(len(nus)), [f"{nu:g}" for nu in nus])
        panel.grid(False)
        panel.set_xlabel("rounds")
        panel.set_title(title)
    drawn[0, 0].set_ylabel("ν")
    return figure


def claims(logs: list[Log]) -> list[Claim]:
    """None: the paper says nothing of nu but that it is small."""
    return []
