"""The measured pi of the scaled sign on ResNet-18 (Appendix D)."""

from __future__ import annotations

from typing import Any

import numpy as np

from mpisim.analysis import labels, panels, style
from mpisim.analysis.claims import Claim, Evidence, decided, state, undecided
from mpisim.analysis.curves import ROUNDS, Axis
from mpisim.runs.log.reader import Log

SOURCE = "CD-Adam, Appendix D"
QUOTE = "the actual pi ranges from [0.597, 0.713] during the entire training procedure"
LOW, HIGH = 0.597, 0.713
SHADE = "#dddddd"
CURVES: dict[str, tuple[str, str, Any]] = {
    "pi_up": ("workers, mean", style.COLOURS[0], "-"),
    "pi_up_max": ("workers, largest", style.COLOURS[1], (0, (1, 1.2))),
    "pi_down": ("server", style.COLOURS[2], (0, (4, 1.5))),
}


def draw(logs: list[Log]) -> Any:
    """Over the rounds: workers' mean and largest, the server's, and the paper's range."""
    log = logs[0]
    figure, ((panel,),) = panels.grid(1, 1, (5.6, 3.0))
    panel.axhspan(LOW, HIGH, color=SHADE, linewidth=0)
    for name, (_, *look) in CURVES.items():
        panels.curve(panel, [log], ROUNDS, Axis(name, log=False), *look)
    panels.dress(panel, ROUNDS, Axis("pi_up", log=False), "round", "pi")
    entries = panels.entries_of({text: (colour, dash) for text, colour, dash in CURVES.values()})
    panels.legend(figure, entries + panels.colours_of([("the paper's range", SHADE)], 6))
    panels.caption(figure, labels.training(log.config, log.n), 2)
    return figure


def claims(logs: list[Log]) -> list[Claim]:
    """That pi stays in the paper's range."""
    return [in_range(logs[0])]


def in_range(log: Log) -> Claim:
    """pi within [0.597, 0.713], mean over the workers, in every logged round."""
    pi = log.column("pi_up")
    pi = pi[np.isfinite(pi)]
    text = f"pi of the scaled sign is within [{LOW}, {HIGH}] in the whole training"
    if not pi.size:
        return undecided(text, QUOTE, SOURCE, "no round was logged")
    low, high = float(pi.min()), float(pi.max())
    said = f"{low:.3f} to {high:.3f}, {len(pi)} rounds, {labels.training(log.config, log.n)}"
    within = decided(low >= LOW and high <= HIGH)
    return state(text, QUOTE, SOURCE, [Evidence("", said, within, {"low": low, "high": high})])
