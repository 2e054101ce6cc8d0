"""The cores of this machine."""

from __future__ import annotations

import os


def usable() -> frozenset[int]:
    """The cores that this process may use; all of them where the system does not tell (macOS)."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))
