"""Runs with more ranks than cores: ranks take turns, so their seconds say little about methods."""

from __future__ import annotations

from collections.abc import Iterable

from mpisim.runs.log.reader import Log

WHY = "more ranks than cores"


def oversubscribed(logs: Iterable[Log]) -> bool:
    """Whether one of the runs says that it had more ranks than cores."""
    return any(log.attrs.get("oversubscribed", 0) for log in logs)


def note(logs: Iterable[Log]) -> str:
    """A line below a figure over seconds; empty where every rank had a core."""
    found = list(logs)
    few = [log for log in found if oversubscribed([log])]
    if not few:
        return ""
    which = "the runs" if len(few) == len(found) else f"{len(few)} of {len(found)} runs"
    return f"{which} had {WHY}: their seconds are not to be compared"
