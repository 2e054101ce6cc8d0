"""Figure 11: how the number of workers n and the batch size tau change CD-Adam's convergence."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from statistics import mode
from typing import Any

import numpy as np

from mpisim.analysis import labels, panels, style
from mpisim.analysis.claims import Claim, Evidence, Verdict, seed, state
from mpisim.analysis.curves import LOSS, ROUNDS
from mpisim.runs.labels import by_key
from mpisim.runs.log.reader import Log

from .equal_cost import QUOTES, by_seed

SOURCE = "CD-Adam, Appendix E.3 and Figure 11"
DASHES = ((0, (1, 1.2)), (0, (4, 1.5)), "-")
CLAIMS = {  # what is claimed, and what the paper says
    "n": ("a larger n", QUOTES["workers_11"]),
    "τ": ("a larger batch size", QUOTES["batch_11"]),
}


def groups(logs: list[Log]) -> dict[str, dict[int, list[Log]]]:
    """{"n": runs by workers, at the most common batch; "τ": runs by batch, at the most n}."""
    n, tau = mode(log.n for log in logs), mode(map(_batch, logs))
    ordered = sorted(logs, key=lambda log: (log.n, _batch(log), seed(log)))
    same_tau = [log for log in ordered if _batch(log) == tau]
    same_n = [log for log in ordered if log.n == n]
    return {"n": by_key(same_tau, lambda log: log.n), "τ": by_key(same_n, _batch)}


def _batch(log: Log) -> int:
    return int(log.config["method"]["batch"])


def draw(logs: list[Log]) -> Any:
    """Training loss over rounds, for each n and for each tau."""
    figure, drawn = panels.grid(1, 2)
    for panel, (name, runs) in zip(drawn[0], groups(logs).items(), strict=True):
        looks = zip(runs.items(), style.COLOURS, DASHES, strict=False)
        for (value, group), colour, dash in looks:
            label = f"{name} = {value}"
            panels.curve(panel, group, ROUNDS, LOSS, colour, dash, label=label)
        panels.dress(panel, ROUNDS, LOSS, "round")
        panel.legend(fontsize=8)
    drawn[0, 0].set_ylabel("training loss")
    trained = labels.training(logs[0].config, logs[0].n)
    panels.caption(figure, trained.split(", n =")[0], 2)
    return figure


def claims(logs: list[Log]) -> list[Claim]:
    """The larger n or tau, the faster the training loss falls."""
    evidence = groups(logs)
    return [
        state(f"{what} decreases the training loss faster", quote, SOURCE, _faster(evidence[name]))
        for name, (what, quote) in CLAIMS.items()
    ]


def _faster(runs: dict[int, list[Log]]) -> list[Evidence]:
    """Each value against the one before: means of the training loss over the rows after row 0."""
    evidence = []
    for (less, slow), (more, fast) in pairwise(runs.items()):
        both = [(a, b) for a in fast for b in slow if seed(a) == seed(b)]
        means = np.array([[LOSS.values(log)[1:].mean() for log in pair] for pair in both])
        where = f"{more} against {less}"
        if not both:
            evidence.append(Evidence(where, "no seed has both runs", Verdict.UNDECIDED))
            continue
        one = by_seed(where, both, means[:, 1] / means[:, 0], "fewer")
        first, second = np.median(means, axis=0)
        text = f"mean loss over the rounds {first:.3g} and {second:.3g}: {one.measured}"
        evidence.append(dataclasses.replace(one, measured=text))
    return evidence
