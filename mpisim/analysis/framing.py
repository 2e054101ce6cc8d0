"""Where framing is too large to be left out silently."""

from __future__ import annotations

from collections.abc import Sequence

from mpisim.analysis.curves import FRAMING, SENT, SUMMED, Axis
from mpisim.analysis.run_groups import RunGroup
from mpisim.analysis.targets import name_of
from mpisim.core.errors import InputError
from mpisim.runs.log.reader import Log

ABOVE = 0.05  # of the payload


def share(log: Log, axis: Axis = SENT) -> float:
    """Framing over payload in the last row; 0 for other axes, and where a log lacks the columns."""
    if axis.name not in FRAMING or axis.framing or not log.rows:
        return 0.0
    try:
        payload = log.column(axis.name)[-1]
        framing = sum(log.column(name)[-1] for name in FRAMING[axis.name])
    except InputError:
        return 0.0
    return float(framing / payload) if payload else 0.0


def note(
    groups: Sequence[RunGroup], axes: Sequence[Axis] = (SENT,), how: str = "--framing includes it"
) -> str:
    """A line about the group with most framing; empty where none is above `ABOVE` on an axis."""
    found = {
        (place, axis.name): max(share(log, axis) for log in group.logs)
        for place, group in enumerate(groups)
        for axis in axes
    }
    above = {key: value for key, value in found.items() if value > ABOVE}
    if not above:
        return ""
    (place, name), most = max(above.items(), key=lambda item: item[1])
    several = len({own for own, _ in above}) > 1
    log, percent = groups[place].logs[0], f"{most:.{0 if most >= 0.1 else 1}%}"
    worst = groups[place].label or (name_of(log) if log.config else log.path.stem)
    who, adds = (f"({worst})", "adds up to") if several else (f"by {worst}", "adds")
    return f"framing {adds} {percent} to the {SUMMED[name]} {who}; {how}"
