"""The points of a sweep and its summary file, which can be read without MPI."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mpisim.core.atomic_file import write_json
from mpisim.core.errors import InputError
from mpisim.runs.status import EXIT_CODES, STOPPED

SUMMARY = "sweep.json"


class Spread(NamedTuple):
    """How points are dealt to processes.

    ranks_per_run : of the job, for a point that does not say how many ranks it needs
    jobs : processes that run points without mpirun; 0: the ranks of the job do
    """

    ranks_per_run: int = 1
    jobs: int = 0


ONE_RANK = Spread()


class Group(NamedTuple):
    """Which of several sweeps one is, for its progress.

    text : ``group 2 of 3 (fig4)``; empty if it is the only one
    later : the size of all points that later ones run, as `mpisim.runs.sweep.order.Work` has it
    """

    text: str = ""
    later: float = 0.0


ALONE = Group()


@dataclasses.dataclass
class Point:
    """One point of a grid.

    name : method-compressor-data-hash, the name of the log without ``.h5``; no hash where the
        point is not an experiment
    log : the path of the log; empty where there can be none
    settings : {TABLE.KEY: value} of the keys that vary over the grid
    config : the resolved experiment as TOML; empty where the point is not an experiment
    status : done, diverged, skipped, interrupted, terminated; empty before the point has run
    exit_code : what `mpisim run` would exit with; None before the point has run
    reason : why the point was skipped
    seconds : from set-up to the end of the log; None if no sweep has timed the run
    before : the log was complete when the sweep started
    ranks : that it needs; None for as many as the sweep gives to a run
    earlier : the log with a smaller budget that it goes on from; empty where it starts anew
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
    ranks: int | None = None
    earlier: str = ""

    def end(self, status: str, reason: str = "", seconds: float | None = None) -> None:
        """Record how the point ended."""
        self.status, self.reason, self.seconds = status, reason, seconds
        self.exit_code = EXIT_CODES[status]


def exit_code(points: Sequence[Point]) -> int:
    """The exit code of a sweep: 0, or that of the run which a signal stopped."""
    return next((EXIT_CODES[p.status] for p in points if p.status in STOPPED), 0)


def write_summary(folder: Path, points: Sequence[Point]) -> None:
    """Write FOLDER/sweep.json, whole or not at all; `OutputError` where that fails."""
    write_json(folder / SUMMARY, {"points": [dataclasses.asdict(point) for point in points]})


def read_summary(folder: Path) -> list[Point]:
    """The points in FOLDER/sweep.json; `InputError` where it is missing or damaged."""
    path = folder / SUMMARY
    try:
        return [Point(**point) for point in json.loads(path.read_text(encoding="utf-8"))["points"]]
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}; run the sweep first") from None
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path}: not the summary of a sweep; run the sweep again") from None
