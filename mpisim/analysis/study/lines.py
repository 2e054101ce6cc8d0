"""The methods of a figure, each with its best step: drawn, and compared."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from mpisim.analysis import claims, panels
from mpisim.analysis.claims import Claim, Evidence, Targets, Verdict
from mpisim.analysis.curves import GRADIENT, Axis
from mpisim.analysis.study import tuning
from mpisim.runs.log.reader import Log

QUESTION = ("", "no quote: measured here")  # what is quoted, and from where
TEXTS = {
    "fewer": "fewer {} than",
    "significantly": "significantly fewer {} than",
    "much": "much fewer {} than",
    "around": "about as many {} as",
}


@dataclasses.dataclass(frozen=True)
class Line:
    """A method as a figure shows it: the runs whose keys have these values.

    keys : {"method.name": "gd"}, as in the configuration of a log
    """

    label: str
    colour: str
    keys: Mapping[str, Any]
    dash: Any = "-"

    def has(self, log: Log) -> bool:
        """Whether the run is one of the line's."""
        return all(tuning.value_of(log, key) == value for key, value in self.keys.items())


@dataclasses.dataclass(frozen=True)
class Lines:
    """Lines over a cost, in a panel for each data set or other setting.

    panel : a run's panel, which is its title; runs of one panel have a common target
    order : of the panels; unit : of the cost
    targets : shares of y at the start, to which steps are tuned
    """

    lines: Sequence[Line]
    cost: Axis
    panel: Callable[[Log], str]
    order: Sequence[str] = ()
    y: Axis = GRADIENT
    unit: str = "bits"
    targets: Targets = claims.DECADES

    def best(self, logs: Sequence[Log]) -> dict[tuple[str, str], tuning.BestSteps]:
        """The best step of each line in each panel; `InputError` for a line of two settings."""
        tuned = tuning.best_steps(logs, self.cost, self.y, self.targets, self.panel)
        items = (
            ((self.panel(steps.logs[0]), line.label), steps)
            for steps in tuned
            for line in self.lines
            if line.has(steps.logs[0])
        )
        return tuning.by_data(tuning.one_of_each(items), self.order)

    def draw(self, logs: Sequence[Log]) -> Any:
        """A row of panels; step sizes beside them.

        A line without a step that went well is drawn with its smallest.
        """
        best = self.best(logs)
        names = tuning.data_sets(best)

        def fill(panel: Any, _: int, name: str) -> None:
            for line in self.lines:
                steps = best.get((name, line.label))
                runs = [log for log in logs if line.has(log) and self.panel(log) == name]
                step = steps.step if steps else min(map(_step, runs), default=None)
                if step is not None:
                    runs = steps.logs if steps else [log for log in runs if _step(log) == step]
                    look = line.colour, line.dash
                    panels.curve(panel, runs, self.cost, self.y, *look, label=f"γ = {step:g}")
            panels.dress(panel, self.cost, self.y, self.cost.label(logs[0]))
            panel.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1), handlelength=1)

        entries = panels.entries_of({line.label: (line.colour, line.dash) for line in self.lines})
        labels = [self.y.label(logs[0])]
        return panels.matrix([0], names, fill, labels=labels, titles=names, entries=entries)

    def against(self, *pairs: Any) -> Callable[[Sequence[Log]], Iterator[Claim]]:
        """The claims `fewer` of pairs of lines, each with the further arguments of `fewer`."""
        return lambda logs: (self.fewer(logs, *pair) for pair in pairs)

    def fewer(
        self,
        logs: Sequence[Log],
        less: Line,
        more: Line,
        word: str = "fewer",
        y: Axis | None = None,
        saying: tuple[str, str] = QUESTION,
    ) -> Claim:
        """The claim that ``less`` needs less of the cost than ``more``, each with its best step.

        A panel in which one of them has runs, but no step that went well, is not decided.

        word : one of `TEXTS`, as in `compare`; saying : quote and source
        y : what falls, where that is not what steps are tuned by
        """
        best, evidence = self.best(logs), []
        both = (less, more)
        every = [*logs, *tuning.diverged(logs)]
        ran = {(self.panel(log), line.label): 1 for log in every for line in both if line.has(log)}
        for name in tuning.data_sets(tuning.by_data(ran, self.order)):
            a, b = best.get((name, less.label)), best.get((name, more.label))
            if a and b:
                evidence.append(tuning.compare_steps(name, a, b, self.cost, y or self.y, word=word))
            elif all((name, line.label) in ran for line in both):
                text = f"no step of {(more if a else less).label} went well on all seeds"
                evidence.append(Evidence(name, text, Verdict.UNDECIDED))
        text = f"{less.label} needs {TEXTS[word].format(self.unit)} {more.label}"
        return claims.state(text, *saying, evidence)


# panels


def data_and_l2(log: Log) -> str:
    """A panel for each data set and regulariser: ``a9a, l2 = 0.01``."""
    return f"{tuning.value_of(log, 'problem.data')}, l2 = {tuning.value_of(log, 'problem.l2'):g}"


def titled(key: str, titles: Mapping[Any, str]) -> tuple[Callable[[Log], str], Sequence[str]]:
    """A panel for each value of a key with its title, and their order."""
    return lambda log: titles[tuning.value_of(log, key)], tuple(titles.values())


def _step(log: Log) -> float:
    return float(log.attrs["stepsize"])
