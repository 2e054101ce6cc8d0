"""How a run ends: the status in its log and in a sweep's summary, and the exit code."""

from __future__ import annotations

from mpisim.core.errors import Diverged, InputError
from mpisim.runs.signals import STATUS

COMPLETE = ("done", "diverged")  # a sweep never runs these again
STOPPED = tuple(STATUS.values())  # by a signal
EXIT_CODES = {
    "done": 0,
    "diverged": Diverged.exit_code,
    "skipped": InputError.exit_code,
    **{status: 128 + number for number, status in STATUS.items()},
}
