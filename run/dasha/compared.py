"""Methods with their best steps: what each needs of a cost to get to a target."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from mpisim.analysis import labels, panels
from mpisim.analysis.claims import Claim, Evidence, Verdict, decided, state
from mpisim.analysis.curves import EPOCHS, GRADIENT, LOSS, Axis
from mpisim.analysis.study import BestSteps, best_steps, by_data, compare_steps, data_sets
from mpisim.runs.log.reader import Log

ORDER = ("mushrooms", "a9a", "w8a", "phishing")
BITS = Axis("bits_up", log=True)  # the first 3% of a run are most of the way down
GRADIENTS = dataclasses.replace(EPOCHS, log=True)
COSTS = {BITS: "bits", GRADIENTS: "sample gradients"}
WIRE_BITS = 32
Saying = tuple[str, str]  # quote, source


@dataclasses.dataclass(frozen=True)
class Line:
    """A method with a compressor, as it is drawn."""

    method: str
    colour: str
    compressor: str = "randk"
    with_compressor: bool = False

    @property
    def name(self) -> str:
        """``DASHA``, or ``DASHA, PermK``."""
        sent = ", " + labels.compressor({"name": self.compressor})
        return labels.method(self.method) + (sent if self.with_compressor else "")

    @property
    def dash(self) -> Any:
        """Solid for DASHA, dotted with PermK, which lies on it; dashed for MARINA."""
        if "dasha" not in self.method:
            return (0, (4, 1.5))
        return (0, (1, 1.5)) if self.compressor == "permk" else "-"


Groups = dict[tuple[str, str, str], BestSteps]  # by data set, method and compressor


def best(logs: Sequence[Log], cost: Axis) -> Groups:
    """The step that needs the least to get f to where all methods of a data set reach.

    f as in the published code: with too large a step |grad f|^2 vanishes, and f stays large.
    """
    groups = {}
    for steps in best_steps(logs, cost, LOSS):
        tables = (steps.logs[0].config[table] for table in ("problem", "method", "compressor"))
        problem, method, compressor = tables
        groups[str(problem["data"]), str(method["name"]), str(compressor["name"])] = steps
    return by_data(groups, ORDER)


def draw(lines: Sequence[Line], logs: list[Log]) -> Any:
    """|grad f(x^k)|^2 over each cost, a column for each data set; steps in the corners."""
    groups = {cost: best(logs, cost) for cost in COSTS}
    names = data_sets(groups[BITS])

    def fill(panel: Any, cost: Axis, data: str) -> None:
        for line in lines:
            steps = groups[cost].get((data, line.method, line.compressor))
            if steps:
                look = line.colour, line.dash
                panels.curve(panel, steps.logs, cost, GRADIENT, *look, label=f"γ = {steps.step:g}")
        panels.dress(panel, cost, GRADIENT, cost.label(logs[0]))
        panel.legend(fontsize=7, loc="upper right", handlelength=1.6)

    return panels.matrix(
        list(COSTS),
        names,
        fill,
        labels=[GRADIENT.label(logs[0])] * len(COSTS),
        titles=names,
        entries=panels.entries_of({line.name: (line.colour, line.dash) for line in lines}),
    )


def fewer(
    less: Line,
    more: Line,
    cost: Axis,
    saying: Saying,
    logs: Sequence[Log],
    how: str = "",
    word: str = "fewer",
) -> Claim:
    """The claim that ``less`` needs less of a cost than ``more``, each with its best step."""
    much = "fewer" if word == "fewer" else f"{word} fewer"
    text, groups = f"{less.name} needs {much} {COSTS[cost]} than {more.name}{how}", best(logs, cost)
    pairs = {
        data: [groups.get((data, line.method, line.compressor)) for line in (less, more)]
        for data in data_sets(groups)
    }
    evidence = [
        compare_steps(data, a, b, cost, word=word) for data, (a, b) in pairs.items() if a and b
    ]
    return state(text, *saying, evidence)


def up_to(largest: float, logs: Iterable[Log]) -> list[Log]:
    """The runs with a step of at most ``largest``."""
    return [log for log in logs if float(log.attrs["stepsize"]) <= largest]


def compressed_only(methods: Sequence[str], saying: Saying, logs: Iterable[Log]) -> Claim:
    """No round of any run, after g^0, sends more than 32 K bits a worker."""
    groups = {name: [log for log in logs if log.attrs["method"] == name] for name in methods}
    text = f"{', '.join(map(labels.method, methods))}: no uncompressed round"
    return state(
        text, *saying, [_sent(labels.method(name), group) for name, group in groups.items()]
    )


def _sent(name: str, logs: list[Log]) -> Evidence:
    if not logs:
        return Evidence(name, "no run", Verdict.UNDECIDED)
    most = max(_most(log) / (WIRE_BITS * int(log.config["compressor"]["k"])) for log in logs)
    note = f"at most {most:g} times 32 K bits a round in {len(logs)} runs"
    return Evidence(name, note, decided(most <= 1), {"largest": most})


def _most(log: Log) -> float:
    """Bits a round and worker between two rows, the most; without those of g^0."""
    rounds, bits = log.column("round"), log.column("bits_up")
    later = rounds > 0
    return float(np.max(np.diff(bits[later]) / np.diff(rounds[later]))) / log.n
