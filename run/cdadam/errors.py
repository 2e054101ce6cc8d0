"""Section 4: error feedback's compression error and v, against those of Markov compression."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mpisim.analysis import labels, panels
from mpisim.analysis.claims import Claim, Evidence, Verdict, clear, decided, state, value_at
from mpisim.analysis.curves import ROUNDS, Axis, Named
from mpisim.analysis.study import by_data, data_sets
from mpisim.runs.log.reader import Log

from .logistic import LOOKS, ORDER, OWN, PLAIN, nu_of

UP = Named("error_up", log=True, text="|ĝ − g|")
DOWN = Named("error_down", log=True, text="|g̃ − ĝ|")
V = Named("v_mean", log=True, text="mean of v")
AXES = (UP, DOWN, V)
SECTION_4, SECTION_5 = "CD-Adam, Section 4", "CD-Adam, Section 5"
UNSTABLE = (
    "the variance term v_t, which is the moving average of the quadratic of gradient, can be"
    " unstable due to accumulating gradient compression error"
)
DIVERGES = (
    "the traditional error feedback can only guarantee constant compression error, the accumulation"
    " of the quadratic error will make the variance diverge"
)
SMALLER = (
    "If the sequence of {w_t} is convergent, Markov compression error at t-step will be much"
    " smaller than the constant error bound obtained by plain error feedback"
)
FEEDBACK = "ef-amsgrad"

Found = dict[tuple[str, str], Log]  # {(data, method): run}


def runs(logs: list[Log]) -> Found:
    """The runs by data set and method; each has one step."""
    named = {(str(log.config["problem"]["data"]), str(log.attrs["method"])): log for log in logs}
    return by_data(named, ORDER)


def draw(logs: list[Log]) -> Any:
    """A column for each data set; both errors and v over the rounds."""
    found = runs(logs)
    names = data_sets(found)

    def fill(panel: Any, y: Axis, data: str) -> None:
        for method in reversed(LOOKS):
            if (data, method) in found and not (method == PLAIN and y is not V):
                panels.curve(panel, [found[data, method]], ROUNDS, y, *LOOKS[method])
        panels.dress(panel, ROUNDS, y, ROUNDS.label(logs[0]))

    return panels.matrix(
        AXES,
        names,
        fill,
        labels=[axis.text for axis in AXES],
        titles=names,
        entries=panels.entries_of({labels.method(method): look for method, look in LOOKS.items()}),
        title=f"ν = {nu_of(logs[0]):g}",
    )


def claims(logs: list[Log]) -> Iterator[Claim]:
    """On both errors, and on v."""
    found = runs(logs)
    text = "CD-Adam's compression errors end below those of error feedback"
    each = [_below(found, data, y) for data in data_sets(found) for y in (UP, DOWN)]
    yield state(text, SMALLER, SECTION_5, each)
    text = "error feedback's v ends above those of uncompressed AMSGrad and CD-Adam"
    yield state(text, UNSTABLE, SECTION_4, [_v(found, data) for data in data_sets(found)])
    text = "error feedback's v grows in the second half of the rounds"
    yield state(text, DIVERGES, SECTION_4, [_grows(found, data) for data in data_sets(found)])


def _below(found: Found, data: str, y: Named) -> Evidence:
    where = f"{data}, {y.text}"
    if (data, OWN) not in found or (data, FEEDBACK) not in found:
        return Evidence(where, "no complete run of both", Verdict.UNDECIDED)
    own, other = (_end(found[data, method], y) for method in (OWN, FEEDBACK))
    said = f"{own:.2g} and {other:.2g}"
    return Evidence(where, said, clear(other / own), {"median": other / own})


def _v(found: Found, data: str) -> Evidence:
    if any((data, method) not in found for method in (OWN, FEEDBACK, PLAIN)):
        return Evidence(data, "no complete run of all three", Verdict.UNDECIDED)
    own, other, plain = (_end(found[data, method], V) for method in (OWN, FEEDBACK, PLAIN))
    said = f"error feedback {other:.2g}, CD-Adam {own:.2g}, AMSGrad {plain:.2g}"
    above = clear(other / plain) is Verdict.HOLDS and clear(other / own) is Verdict.HOLDS
    return Evidence(data, said, decided(above), {"feedback": other, "own": own, "plain": plain})


def _grows(found: Found, data: str) -> Evidence:
    if (data, FEEDBACK) not in found:
        return Evidence(data, "no complete run of error feedback", Verdict.UNDECIDED)
    log = found[data, FEEDBACK]
    middle = value_at(log, V, ROUNDS, float(ROUNDS.values(log)[-1]) / 2)
    ratio = _end(log, V) / middle
    return Evidence(data, f"{ratio:.2g} times", clear(ratio), {"median": ratio})


def _end(log: Log, y: Named) -> float:
    return value_at(log, y, ROUNDS, float("inf"))
