"""Figures 1, 3 and 5 to 10: image classification."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from mpisim.analysis import labels, panels
from mpisim.analysis.claims import Claim, Evidence, seed, state, undecided
from mpisim.analysis.curves import EPOCHS, LOSS, NORM, Axis
from mpisim.runs.labels import by_key
from mpisim.runs.log.reader import Log

from . import equal_cost, pi
from .equal_cost import ACCURACY, BITS, COSTS, QUOTES, TEST_ACCURACY, TEST_LOSS, TEST_NORM, Runs

RIVALS = ("ef21-2way", "1bit-adam")
LOOKS = dict(zip(("cd-adam", "amsgrad", *RIVALS), equal_cost.FOUR_LOOKS, strict=True))
SENT = ("bits_up", "bits_down")
Groups = dict[str, list[Log]]  # {method: its runs by seed}
ALL: tuple[Axis, ...] = (LOSS, NORM, ACCURACY, TEST_LOSS, TEST_NORM, TEST_ACCURACY)

QUANTITIES: dict[str, tuple[str, Axis, Axis]] = {
    "loss": ("smaller loss", LOSS, TEST_LOSS),
    "norm": ("smaller gradient norm", NORM, TEST_NORM),
    "accuracy": ("higher accuracy", ACCURACY, TEST_ACCURACY),
}


class Statement(NamedTuple):
    """The paper says that CD-Adam is better than rivals, in some ys, at equal x.

    ``better`` : {rival: the ys in which CD-Adam is better}; ``word``: by how much
    """

    quote: str
    claim: str
    x: Axis
    better: dict[str, tuple[Axis, ...]]
    word: str = "fewer"


def of_method(logs: list[Log], methods: tuple[str, ...]) -> Groups:
    """{method: its runs by seed}, in the order of the figure."""
    groups = by_key(sorted(logs, key=seed), lambda log: str(log.attrs["method"]))
    return {method: groups[method] for method in methods if method in groups}


def row_by_row(runs: Runs) -> list[Log]:
    """Runs whose rows have the mean of their bits, to be averaged row by row.

    Bits of EF21 differ by 1% between seeds, as it encodes the indices of top-k. Runs whose rows are
    not of the same rounds stay as they are.
    """
    rounds = runs[0].column("round")
    if not all(np.array_equal(log.column("round"), rounds) for log in runs):
        return list(runs)
    mean = {name: np.mean([log.column(name) for log in runs], axis=0) for name in SENT}
    return [dataclasses.replace(log, columns=log.columns | mean) for log in runs]


class Curves(NamedTuple):
    """What a figure shows of the runs of one network.

    Attributes
    ----------
    source : str
    methods : tuple of str
    axes : pairs of x and y, row by row, ``columns`` in a row
    better : statements on CD-Adam and its rivals
    fewer : (rival, times) that CD-Adam saves bits against, in training loss and test accuracy
    number : of the figure, for what is said of curves on their way
    x : what these are judged over
    pi : whether the paper's range of pi is checked
    """

    source: str
    methods: tuple[str, ...]
    axes: tuple[tuple[Axis, Axis], ...]
    columns: int
    better: tuple[Statement, ...] = ()
    fewer: tuple[tuple[str, float], ...] = ()
    number: int = 0
    x: Axis = BITS
    pi: bool = False

    def draw(self, logs: list[Log]) -> Any:
        """The panels."""
        groups = of_method(logs, self.methods)
        first = next(iter(groups.values()))[0]
        figure, drawn = panels.grid(-(-len(self.axes) // self.columns), self.columns)
        for panel, (x, y) in zip(drawn.flat, self.axes, strict=True):
            for method, runs in reversed(groups.items()):
                panels.curve(panel, row_by_row(runs), x, y, *LOOKS[method])
            panels.dress(panel, x, y, x.label(first), y.label(first))
        looks = {labels.method(method): LOOKS[method] for method in groups}
        panels.legend(figure, panels.entries_of(looks))
        panels.caption(figure, labels.training(first.config, first.n), self.columns)
        return figure

    def claims(self, logs: list[Log]) -> Iterator[Claim]:
        """What the paper says of the figure."""
        groups = of_method(logs, self.methods)
        if "cd-adam" not in groups:
            yield undecided("CD-Adam", "", self.source, "no complete run of CD-Adam")
            return
        cdadam = groups["cd-adam"]
        for rival, times in self.fewer:
            text = f"CD-Adam needs about {times:g} times fewer bits than {labels.method(rival)}"
            each = [equal_cost.gone(rival)]
            if rival in groups:
                sides, ys = (cdadam, groups[rival], BITS), (LOSS, equal_cost.TEST_ERROR)
                each = [equal_cost.times_fewer(*sides, y, times) for y in ys]
                each.append(equal_cost.all_rounds(*sides, times))
            yield state(text, QUOTES["around_1"], self.source, each)
        if self.pi:
            yield pi.in_range(cdadam)
        for statement in self.better:
            text = f"CD-Adam has the {statement.claim} at equal {COSTS[statement.x]}"
            yield state(text, statement.quote, self.source, _compared(groups, cdadam, statement))
        yield from equal_cost.claims_on_the_way(groups, self.x, self.number, self.source)


def _compared(groups: Groups, cdadam: Runs, statement: Statement) -> Iterator[Evidence]:
    for rival, ys in statement.better.items():
        for y in ys if rival in groups else ():
            yield equal_cost.better(cdadam, groups[rival], y, statement.x, statement.word)
        if rival not in groups:
            yield equal_cost.gone(rival)


def _of_rivals(y: Axis) -> dict[str, tuple[Axis, ...]]:
    return dict.fromkeys(RIVALS, (y,))


FIG1 = Curves(
    "CD-Adam, Figure 1",
    ("cd-adam", "amsgrad", "1bit-adam"),
    ((BITS, LOSS), (BITS, TEST_ACCURACY)),
    2,
    fewer=(("amsgrad", 32.0), ("1bit-adam", 5.0)),
    pi=True,
)
FIG3 = Curves(
    "CD-Adam, Section 7.2 and Figure 3",
    ("cd-adam", *RIVALS),
    ((EPOCHS, NORM), (BITS, NORM), (BITS, LOSS), (BITS, TEST_ACCURACY)),
    2,
    (
        Statement(QUOTES["smaller_3"], "smaller gradient norm", EPOCHS, _of_rivals(NORM)),
        Statement(QUOTES["smaller_3"], "smaller gradient norm", BITS, _of_rivals(NORM)),
        Statement(QUOTES["later_3"], "smaller training loss", BITS, {"ef21-2way": (LOSS,)}),
        Statement(QUOTES["best_3"], "best test accuracy", BITS, _of_rivals(TEST_ACCURACY)),
    ),
    number=3,
)


def over(x: Axis, number: int) -> Curves:
    """Figures 5, 7 and 9 over bits, and 6, 8 and 10 over epochs: training above test."""
    axes, source = tuple((x, y) for y in ALL), f"CD-Adam, Appendix E.2 and Figure {number}"
    statements = []
    for quantity, (text, training, test) in QUANTITIES.items():
        quote = QUOTES["shown"][str(number)][quantity]
        word = "significantly" if "significant" in quote else "fewer"
        statements.append(Statement(quote, text, x, _better(x, training, test), word))
    return Curves(source, ("cd-adam", *RIVALS), axes, 3, tuple(statements), number=number, x=x)


def _better(x: Axis, training: Axis, test: Axis) -> dict[str, tuple[Axis, ...]]:
    """At equal epochs the paper has 1-bit Adam ahead in training loss and accuracy."""
    both, norms = (training, test), training is NORM
    one_bit = both if x is BITS or norms else (test,)
    return {"ef21-2way": both, "1bit-adam": one_bit}
