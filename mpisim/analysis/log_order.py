"""The order of the logs in a folder: by what was run, and numbers by size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mpisim.core.errors import InputError
from mpisim.core.schema import parse_toml
from mpisim.runs.labels import flatten, varying
from mpisim.runs.log.isolated import DAMAGE, run_isolated
from mpisim.runs.log.untrusted import opened

FIRST = ("method.name", "compressor.name", "problem.name", "problem.data")
LAST = ("run.seed",)


def by_settings(logs: Sequence[Path]) -> list[Path]:
    """The logs by method, compressor, problem, then all settings that vary, and the seed.

    Multiples of the theory step are in the order of their size. Logs without an experiment that
    can be read come last, by name.
    """
    try:
        found = run_isolated("logs", lambda: [_settings(log) for log in logs])
    except InputError:  # reading the logs will say which one makes HDF5 crash
        return sorted(logs)
    varied = varying(found)
    middle = [name for name in varied if name not in FIRST + LAST]
    names = [*FIRST, *middle, *LAST]

    def place(one: tuple[Path, dict[str, Any]]) -> tuple[Any, ...]:
        log, own = one
        return not own, [_rank(own.get(name)) for name in names], log

    return [log for log, _ in sorted(zip(logs, found, strict=True), key=place)]


def _settings(log: Path) -> dict[str, Any]:
    """The flat experiment of a log; empty where it cannot be read."""
    try:
        with opened(log) as file:
            return flatten(parse_toml(str(file.attrs["config"]), str(log)))
    except (InputError, *DAMAGE):
        return {}


def _rank(value: Any) -> tuple[int, float, str]:
    """Missing values, numbers, multiples of the theory step, texts."""
    if value is None:
        return 0, 0.0, ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return 1, float(value), ""
    if value == "theory" or (isinstance(value, dict) and isinstance(value.get("theory"), float)):
        return 2, 1.0 if value == "theory" else value["theory"], repr(value)
    return 3, 0.0, str(value)
