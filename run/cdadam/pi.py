"""The measured pi of the scaled sign on ResNet-18 (Appendix D).

Assumption 4.1 calls pi the share of |v|^2 that compression loses: what the workers lose decides.
Beside it stand what the server keeps, and what the published code prints once an epoch at the
server, 1 - |C(v) - v| / |v| with unsquared norms, summed over the tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mpisim.analysis import labels, panels, style
from mpisim.analysis.claims import Claim, Evidence, Verdict, decided, state
from mpisim.analysis.curves import ROUNDS, Named
from mpisim.runs.log.reader import Log

from .equal_cost import QUOTES

SOURCE = "CD-Adam, Appendix D"
LOW, HIGH = 0.597, 0.713
SHADE = "#dddddd"
KEPT = Named("pi_down", log=False, text="kept, server: 1 − |C(v) − v|²/|v|²", of=lambda pi: 1 - pi)
PRINTED = Named("pi_code", log=False, text="as printed: 1 − |C(v) − v|/|v|, by tensor")
LOST = Named("pi_up", log=False, text="lost, workers: |C(v) − v|²/|v|²")
LOOKS = {LOST: (style.COLOURS[0], "-"), PRINTED: (style.COLOURS[2], (0, (4, 1.5)))}
LOOKS |= {KEPT: (style.COLOURS[1], (0, (1, 1.2)))}


def draw(logs: list[Log]) -> Any:
    """Over the rounds: the three readings, and the paper's range."""
    log = logs[0]
    figure, ((panel,),) = panels.grid(1, 1, (5.6, 3.0))
    panel.axhspan(LOW, HIGH, color=SHADE, linewidth=0)
    for axis, look in LOOKS.items():
        panels.curve(panel, logs, ROUNDS, axis, *look)
    panels.dress(panel, ROUNDS, LOST, "round", "pi")
    entries = panels.entries_of({axis.text: look for axis, look in LOOKS.items()})
    shade = panels.colours_of([("the paper's range", SHADE)], 6)
    panels.legend(figure, entries + shade, columns=1)
    panels.caption(figure, labels.training(log.config, log.n), 2)
    return figure


def claims(logs: list[Log]) -> list[Claim]:
    """That pi stays in the paper's range."""
    return [in_range(logs)]


def in_range(logs: Sequence[Log]) -> Claim:
    """What the workers lose decides; the other measurements are told beside it."""
    text = f"pi of the scaled sign is within [{LOW}, {HIGH}] in the whole training"
    evidence = [_within(logs, axis, axis is LOST) for axis in LOOKS]
    return state(text, QUOTES["in_range_1"], SOURCE, evidence)


def _within(logs: Sequence[Log], axis: Named, counts: bool) -> Evidence:
    """Of all runs."""
    pi, where = np.concatenate([axis.values(log) for log in logs]), axis.text.partition(":")[0]
    pi = pi[np.isfinite(pi)]
    if not pi.size:
        return Evidence(where, "no round was logged", Verdict.UNDECIDED, counts=counts)
    low, high = float(pi.min()), float(pi.max())
    measured = f"{low:.3f} to {high:.3f}"
    within, numbers = decided(low >= LOW and high <= HIGH), {"low": low, "high": high}
    return Evidence(where, measured, within, numbers, counts)
