"""What the paper says of curves on their way, and of rivals that are ahead."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mpisim.analysis import labels
from mpisim.analysis.claims import Claim, Evidence, Verdict, every, judge, state
from mpisim.analysis.curves import LOSS, NORM, Axis
from mpisim.runs.log.reader import Log

from .equal_cost import ACCURACY, COSTS, TEST_ACCURACY, TEST_LOSS, TEST_NORM, better

MIDWAY = {  # Figures 7 and 8
    7: "EF21 intermediately shows a faster decrease in the loss function. [...] EF21 intermediately"
    " shows a faster increase in accuracy as well",
    8: "EF21 intermediately shows a faster decrease in the loss function. [...] EF21 intermediately"
    " shows a faster increase in accuracy",
}
DIVERGES_9 = (
    "1-bit Adam initially shows a lower gradient norm while its gradient norm diverges later"
)
AHEAD_10 = "1-bit Adam keeps a slighter better performance on training loss and training accuracy"
EF21, ONE_BIT, OWN = "ef21-2way", "1bit-adam", "cd-adam"


def claims(found: dict[str, Log], x: Axis, number: int, source: str) -> Iterator[Claim]:
    """The statements of Figure ``number``, whose curves are over x."""
    own, cost = found[OWN], COSTS[x]
    if number in MIDWAY:
        four = LOSS, TEST_LOSS, ACCURACY, TEST_ACCURACY
        each = [_gone(EF21)] if EF21 not in found else [ahead(found[EF21], own, x, y) for y in four]
        text = f"EF21 is ahead of CD-Adam on the way, at equal {cost}"
        yield state(text, MIDWAY[number], source, each)
    rival = found.get(ONE_BIT)
    if number == 9:
        both = [_gone(ONE_BIT)] if rival is None else _lower_then_up(rival, own, x)
        text = "1-bit Adam's gradient norm is lower at first, and grows later"
        yield state(text, DIVERGES_9, source, both)
    if number == 10:
        two = LOSS, ACCURACY
        each = [_gone(ONE_BIT)] if rival is None else [better(rival, own, y, x) for y in two]
        text = f"1-bit Adam is ahead in training at equal {cost}"
        yield state(text, AHEAD_10, source, each)


def ahead(one: Log, other: Log, x: Axis, y: Axis, until: float = 1.0) -> Evidence:
    """``one`` has the better y somewhere within the share ``until`` of what both spent on x."""
    ours, theirs = x.values(one), x.values(other)
    places = ours[(ours > 0) & (ours <= until * min(ours[-1], theirs[-1]))]
    values = [np.interp(places, x.values(log), y.values(log)) for log in (one, other)]
    if not places.size:
        return Evidence(y.label(one), "no row is that early", Verdict.UNDECIDED)
    ratios = values[0] / values[1] if y.name.endswith("accuracy") else values[1] / values[0]
    best = int(np.argmax(ratios))
    measured = f"{values[0][best]:.3g} and {values[1][best]:.3g} at {places[best]:.3g} {COSTS[x]}"
    ratio = float(ratios[best])
    return Evidence(y.label(one), measured, judge([ratio]), {"median": ratio})


def _lower_then_up(one: Log, other: Log, x: Axis) -> Iterator[Evidence]:
    """Below ``other`` in the first half, and at the end above both ``other`` and its own least."""
    for y in (NORM, TEST_NORM):
        first, values = ahead(one, other, x, y, until=0.5), y.values(one)
        least, end, theirs = float(values.min()), float(values[-1]), float(y.values(other)[-1])
        later = Evidence("", "", judge([end / max(least, theirs)]))
        measured = f"{first.measured}; least {least:.3g}, at the end {end:.3g} against {theirs:.3g}"
        numbers = first.numbers | {"least": least, "end": end, "other": theirs}
        yield Evidence(y.label(one), measured, every([first, later]), numbers)


def _gone(rival: str) -> Evidence:
    return Evidence("", f"no complete run of {labels.method(rival)}", Verdict.UNDECIDED)
