"""The lines below figures and tables about what their numbers leave out or assume."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mpisim.analysis.curves import FRAMING, SENT, SUMMED, Axis
from mpisim.analysis.run_groups import RunGroup
from mpisim.core.errors import InputError
from mpisim.runs.log.reader import Log

# With more ranks than cores, ranks take turns; runs side by side share memory and caches.
WHY = "more ranks than cores, or runs side by side"
ABOVE = 0.05  # of the payload: framing that must not be left out silently


def oversubscribed(logs: Iterable[Log]) -> bool:
    """Whether one of the runs says that it had more ranks than cores, or ran beside others."""
    return any(
        log.attrs.get("oversubscribed", 0) or log.attrs.get("side_by_side", 1) > 1 for log in logs
    )


def about_seconds(logs: Sequence[Log]) -> str:
    """Which runs' seconds say little about methods; empty where all seconds count."""
    few = sum(oversubscribed([log]) for log in logs)
    which = "the runs" if few == len(logs) else f"{few} of {len(logs)} runs"
    return f"{which} had {WHY}: their seconds are not to be compared" if few else ""


def about_model(logs: Sequence[Log]) -> str:
    """Which logs do not say how many messages were sent, which `link_model` then assumes."""
    older = [log.path for log in logs if "messages_up" not in log.columns]
    if not older:
        return ""
    more = f" and {len(older) - 1} more" if len(older) > 1 else ""
    return f"{older[0]}{more}: no column messages_up: assumes a message of each worker a gather"


def about_framing(
    groups: Sequence[RunGroup], axes: Sequence[Axis] = (SENT,), how: str = "--framing includes it"
) -> str:
    """Which group has most framing; empty where none is above `ABOVE` on an axis."""
    shares = [
        (max(framing_share(log, axis) for log in group.logs), group, axis.name)
        for group in groups
        for axis in axes
    ]
    above = [one for one in shares if one[0] > ABOVE]
    if not above:
        return ""
    most, worst, name = max(above, key=lambda one: one[0])
    percent = f"{most:.{0 if most >= 0.1 else 1}%}"
    several = any(group is not worst for _, group, _ in above)
    who, adds = (f"({worst.name})", "adds up to") if several else (f"by {worst.name}", "adds")
    return f"framing {adds} {percent} to the {SUMMED[name]} {who}; {how}"


def framing_share(log: Log, axis: Axis = SENT) -> float:
    """Framing over payload in the last row; 0 for other axes, and where a log lacks the columns."""
    if axis.name not in FRAMING or axis.framing or not log.rows:
        return 0.0
    try:
        payload = log.column(axis.name)[-1]
        framing = sum(log.column(name)[-1] for name in FRAMING[axis.name])
    except InputError:
        return 0.0
    return float(framing / payload) if payload else 0.0
