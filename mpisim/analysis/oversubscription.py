"""Runs whose seconds say little about methods.

With more ranks than cores, ranks take turns; runs side by side share memory and caches.
"""

from __future__ import annotations

from collections.abc import Iterable

from mpisim.runs.log.reader import Log

WHY = "more ranks than cores, or runs side by side"


def oversubscribed(logs: Iterable[Log]) -> bool:
    """Whether one of the runs says that it had more ranks than cores, or ran beside others."""
    return any(
        log.attrs.get("oversubscribed", 0) or log.attrs.get("side_by_side", 1) > 1 for log in logs
    )


def note(logs: Iterable[Log]) -> str:
    """A line below a figure over seconds; empty where all seconds count."""
    found = list(logs)
    few = [log for log in found if oversubscribed([log])]
    if not few:
        return ""
    which = "the runs" if len(few) == len(found) else f"{len(few)} of {len(found)} runs"
    return f"{which} had {WHY}: their seconds are not to be compared"
