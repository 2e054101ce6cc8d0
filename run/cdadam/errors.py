"""Section 4: error feedback's compression error and v, against those of Markov compression."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mpisim.analysis import panels
from mpisim.analysis.claims import Claim, Evidence, Verdict, clear, decided, state, value_at
from mpisim.analysis.curves import ROUNDS, Axis, Named
from mpisim.analysis.study import by_data, data_sets
from mpisim.runs.log.reader import Log

from .equal_cost import QUOTES
from .logistic import CDADAM, LOOKS, ORDER, PLAIN, entries, nu_of

UP = Named("error_up", log=True, text="|ĝ − g|")
DOWN = Named("error_down", log=True, text="|g̃ − ĝ|")
V = Named("v_mean", log=True, text="mean of v")
AXES = (UP, DOWN, V)
SECTION_4, SECTION_5 = "CD-Adam, Section 4", "CD-Adam, Section 5"
FEEDBACK = "ef-amsgrad"

Groups = dict[tuple[str, str], Log]  # {(data, method): run}


def runs(logs: list[Log]) -> Groups:
    """The runs by data set and method; each has one step."""
    named = {(str(log.config["problem"]["data"]), str(log.attrs["method"])): log for log in logs}
    return by_data(named, ORDER)


def draw(logs: list[Log]) -> Any:
    """A column for each data set; both errors and v over the rounds."""
    groups = runs(logs)
    names = data_sets(groups)

    def fill(panel: Any, y: Axis, data: str) -> None:
        for method in reversed(LOOKS):
            if (data, method) in groups and not (method == PLAIN and y is not V):
                panels.curve(panel, [groups[data, method]], ROUNDS, y, *LOOKS[method])
        panels.dress(panel, ROUNDS, y, ROUNDS.label(logs[0]))

    left, title = [axis.text for axis in AXES], f"ν = {nu_of(logs[0]):g}"
    return panels.matrix(
        AXES, names, fill, labels=left, titles=names, entries=entries(), title=title
    )


def claims(logs: list[Log]) -> Iterator[Claim]:
    """On both errors, and on v."""
    groups = runs(logs)
    text = "CD-Adam's compression errors end below those of error feedback"
    each = [_below(groups, data, y) for data in data_sets(groups) for y in (UP, DOWN)]
    yield state(text, QUOTES["markov"], SECTION_5, each)
    text = "error feedback's v ends above those of uncompressed AMSGrad and CD-Adam"
    # the paper says only that it "can be unstable"
    yield state(text, "", SECTION_4, [_v(groups, data) for data in data_sets(groups)])
    text = "error feedback's v grows in the second half of the rounds"
    growing = [_grows(groups, data) for data in data_sets(groups)]
    yield state(text, QUOTES["feedback"], SECTION_4, growing)


def _ends(groups: Groups, data: str, y: Named, *methods: str) -> list[float]:
    """y at the end of the runs of these methods that are there."""
    there = [groups[data, method] for method in methods if (data, method) in groups]
    return [value_at(log, y, ROUNDS, float("inf")) for log in there]


def _below(groups: Groups, data: str, y: Named) -> Evidence:
    where, ends = f"{data}, {y.text}", _ends(groups, data, y, CDADAM, FEEDBACK)
    if len(ends) < 2:
        return Evidence(where, "no complete run of both", Verdict.UNDECIDED)
    cdadam, other = ends
    measured = f"{cdadam:.2g} and {other:.2g}"
    return Evidence(where, measured, clear(other / cdadam), {"median": other / cdadam})


def _v(groups: Groups, data: str) -> Evidence:
    ends = _ends(groups, data, V, CDADAM, FEEDBACK, PLAIN)
    if len(ends) < 3:
        return Evidence(data, "no complete run of all three", Verdict.UNDECIDED)
    cdadam, other, plain = ends
    measured = f"error feedback {other:.2g}, CD-Adam {cdadam:.2g}, AMSGrad {plain:.2g}"
    above = clear(other / plain) is Verdict.HOLDS and clear(other / cdadam) is Verdict.HOLDS
    numbers = {"feedback": other, "own": cdadam, "plain": plain}
    return Evidence(data, measured, decided(above), numbers)


def _grows(groups: Groups, data: str) -> Evidence:
    log = groups.get((data, FEEDBACK))
    if log is None:
        return Evidence(data, "no complete run of error feedback", Verdict.UNDECIDED)
    middle = value_at(log, V, ROUNDS, float(ROUNDS.values(log)[-1]) / 2)
    ratio = value_at(log, V, ROUNDS, float("inf")) / middle
    return Evidence(data, f"{ratio:.2g} times", clear(ratio), {"median": ratio})
