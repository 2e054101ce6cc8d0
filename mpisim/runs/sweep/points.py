"""The points of a sweep and the summary file. Needs no MPI: what reads logs may import it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np

from mpisim.core.atomic_file import write_whole
from mpisim.core.errors import InputError, OutputError

Tables = dict[str, Any]
SUMMARY = "sweep.json"
COMPLETE = ("done", "diverged")
EXIT_CODES = {"done": 0, "diverged": 3, "skipped": 2, "interrupted": 130, "terminated": 143}


@dataclasses.dataclass
class Point:
    """One point of a grid.

    Attributes
    ----------
    name : str
        method-compressor-data-hash, the log's name without ``.h5``; without hash where the point
        is no experiment.
    log : str
        The log's path; empty where there can be none.
    settings : dict
        {TABLE.KEY: value} of what is not the same in all points of the grid.
    config : str
        The resolved experiment as TOML; empty where the point is no experiment.
    status : str
        done, diverged, skipped, interrupted, terminated; empty while it waits.
    exit_code : int or None
        What `mpisim run` would end with; None while it waits.
    reason : str
        Why it was skipped.
    seconds : float or None
        From set-up to the end of the log; None for what was complete before and not timed then.
    before : bool
        Its log was complete when the sweep started.
    """

    name: str
    log: str
    settings: dict[str, Any]
    config: str
    status: str = ""
    exit_code: int | None = None
    reason: str = ""
    seconds: float | None = None
    before: bool = False

    def end(self, status: str, reason: str = "", seconds: float | None = None) -> None:
        """Note how it ended."""
        self.status, self.reason, self.seconds = status, reason, seconds
        self.exit_code = EXIT_CODES[status]


def write_summary(folder: Path, points: list[Point]) -> None:
    """FOLDER/sweep.json, whole or not at all; `OutputError` where that fails."""
    write_json(folder / SUMMARY, {"points": [dataclasses.asdict(point) for point in points]})


def read_summary(folder: Path) -> list[Point]:
    """The points of a sweep as FOLDER/sweep.json has them; `InputError` without a whole one."""
    path = folder / SUMMARY
    try:
        return [Point(**point) for point in json.loads(path.read_text(encoding="utf-8"))["points"]]
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}; run the sweep first") from None
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path}: not the summary of a sweep; run the sweep again") from None


def write_json(path: Path, content: Any) -> None:
    """A JSON file, whole or not at all; `OutputError` where that fails."""
    text = json.dumps(content, indent=1, default=_plain) + "\n"
    try:
        write_whole(path, text.encode(), shared=True)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from None


def _plain(value: Any) -> Any:
    """What JSON has for it: numbers and arrays of NumPy as such, anything else as text."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else str(value)


def flatten(tables: Tables, prefix: str = "") -> dict[str, Any]:
    """{TABLE.KEY: value}, tables within tables taken apart but for a step's multiple."""
    flat: dict[str, Any] = {}
    for key, value in tables.items():
        if isinstance(value, dict) and prefix + key != "method.stepsize":
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def differences(many: list[Tables]) -> list[dict[str, Any]]:
    """For each of ``many`` what is not the same in all of them, by TABLE.KEY."""
    flat = [flatten(tables) for tables in many]
    names = dict.fromkeys(name for one in flat for name in one)
    varied = [n for n in names if len({repr(one.get(n)) for one in flat}) > 1]
    return [{n: one[n] for n in varied if n in one} for one in flat]
