"""Start the job of a command."""

from __future__ import annotations

from collections.abc import Callable

from mpisim.comm.job import run_job
from mpisim.runs.sysinfo import software


def guarded(body: Callable[..., int]) -> int:
    """`run_job`, on ranks that all have the same software."""
    return run_job(body, software)
