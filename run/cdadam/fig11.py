"""Figure 11: how the number of workers n and the batch size tau change CD-Adam's convergence."""

from __future__ import annotations

from statistics import mode
from typing import Any

from mpisim.analysis import labels, panels, style
from mpisim.analysis.claims import Claim, Evidence, growing, state
from mpisim.analysis.curves import LOSS, ROUNDS
from mpisim.runs.log.reader import Log

SOURCE = "CD-Adam, Appendix E.3 and Figure 11"
DASHES = ((0, (1, 1.2)), (0, (4, 1.5)), "-")
SAID = {  # what is claimed, and what the paper says
    "n": ("a larger n", "a larger n leads to a faster decrease on training loss"),
    "τ": (
        "a larger batch size",
        "a larger number of batch size achieves a faster convergence rate",
    ),
}


def groups(logs: list[Log]) -> dict[str, dict[int, Log]]:
    """{"n": runs by workers, at the most common batch; "τ": runs by batch, at the most n}."""
    n, tau = mode(log.n for log in logs), mode(map(_batch, logs))
    by_n = {log.n: log for log in sorted(logs, key=lambda log: log.n) if _batch(log) == tau}
    by_tau = {_batch(log): log for log in sorted(logs, key=_batch) if log.n == n}
    return {"n": by_n, "τ": by_tau}


def _batch(log: Log) -> int:
    return int(log.config["method"]["batch"])


def draw(logs: list[Log]) -> Any:
    """Training loss over rounds, for each n and for each tau."""
    figure, drawn = panels.grid(1, 2)
    for panel, (name, runs) in zip(drawn[0], groups(logs).items(), strict=True):
        looks = zip(runs.items(), style.COLOURS, DASHES, strict=False)
        for (value, log), colour, dash in looks:
            panels.curve(panel, [log], ROUNDS, LOSS, colour, dash)
            panel.lines[-1].set_label(f"{name} = {value}")
        panels.dress(panel, ROUNDS, LOSS, "round")
        panel.legend(fontsize=8)
    drawn[0, 0].set_ylabel("training loss")
    trained = labels.training(logs[0].config, logs[0].n)
    panels.caption(figure, trained.split(", n =")[0], 2)
    return figure


def claims(logs: list[Log]) -> list[Claim]:
    """The larger n or tau, the faster the training loss falls."""
    found = groups(logs)
    return [
        state(f"{what} decreases the training loss faster", quote, SOURCE, [_faster(found[name])])
        for name, (what, quote) in SAID.items()
    ]


def _faster(runs: dict[int, Log]) -> Evidence:
    """Compares means of the training loss over the logged rounds after the first."""
    means = {str(value): float(LOSS.values(log)[1:].mean()) for value, log in runs.items()}
    measured = ", ".join(f"{value}: {mean:.3g}" for value, mean in means.items())
    verdict = growing([*means.values()][::-1])
    return Evidence("", f"mean loss over the rounds {measured}", verdict, {"means": means})
