"""CD-Adam, Figure 11: how the number of workers n and the batch size tau change its convergence."""

from __future__ import annotations

from itertools import pairwise
from operator import itemgetter
from typing import Any

from mpisim.analysis import panels, style
from mpisim.analysis.claims import Claim
from mpisim.analysis.papers import networks as nets
from mpisim.runs.log.reader import Log

SOURCE = "CD-Adam, Appendix E.3 and Figure 11"
INSTEAD = nets.INSTEAD
SCALES: dict[str, list[str]] = {
    "quick": [],
    "paper": [
        "problem.width=1.0",
        "problem.pool=1",
        "problem.samples=0",
        "problem.data=cifar10",
        "problem.augment=true",
        "run.rounds=4882",
        "run.log_every=49",
    ],
}
DASHES = ((0, (1, 1.2)), (0, (4, 1.5)), "-")


def groups(logs: list[Log]) -> dict[str, dict[int, Log]]:
    """{"n": runs by workers, at the most common batch; "tau": runs by batch, at the most n}."""
    sizes = [(log.n, _batch(log), log) for log in logs]
    n, tau = _common([s[0] for s in sizes]), _common([s[1] for s in sizes])
    return {
        "n": {
            workers: log for workers, batch, log in sorted(sizes, key=itemgetter(0)) if batch == tau
        },
        "tau": {
            batch: log for workers, batch, log in sorted(sizes, key=itemgetter(1)) if workers == n
        },
    }


def _batch(log: Log) -> int:
    return int(log.config["method"]["batch"])


def _common(values: list[int]) -> int:
    return max(values, key=values.count)


def draw(logs: list[Log]) -> Any:
    """Training loss over rounds, for each n and for each tau."""
    found = groups(logs)
    with panels.styled():
        figure, drawn = panels.grid(1, 2)
        for panel, (name, runs) in zip(drawn[0], found.items(), strict=True):
            looks = list(zip(runs.items(), style.COLOURS, DASHES, strict=False))
            for (value, log), colour, dash in looks:
                panels.curve(panel, [log], nets.ROUNDS, nets.LOSS, colour, dash)
                panel.lines[-1].set_label(f"{'n' if name == 'n' else 'τ'} = {value}")
            panels.dress(panel, nets.ROUNDS, nets.LOSS, "round")
            panel.legend(fontsize=8)
        drawn[0, 0].set_ylabel("training loss")
        nets.caption(figure, nets.trained(logs[0]).split(", n =")[0], 2)
    return figure


def claims(logs: list[Log]) -> list[Claim]:
    """Larger n and larger tau: a faster decrease of the training loss."""
    words = {"n": "A larger n", "tau": "A larger batch size"}
    return [_faster(f"{words[name]}", runs) for name, runs in groups(logs).items()]


def _faster(what: str, runs: dict[int, Log]) -> Claim:
    """By the mean of the training loss over the logged rounds after the first."""
    means = {value: float(nets.LOSS.values(log)[1:].mean()) for value, log in runs.items()}
    values = list(means.values())
    return Claim(
        f"{what} decreases the training loss faster",
        SOURCE,
        "mean loss over the rounds " + ", ".join(f"{v}: {mean:.3g}" for v, mean in means.items()),
        len(values) > 1 and all(a > b for a, b in pairwise(values)),
        {"means": {str(value): mean for value, mean in means.items()}},
    )
