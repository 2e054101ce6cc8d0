"""Run experiments and sweeps from Python."""

from __future__ import annotations

import copy
import dataclasses
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from mpisim.comm.communicators import Comm, all_ranks
from mpisim.comm.job import all_or_none
from mpisim.core.files import require_log_name
from mpisim.core.machine import usable_cores
from mpisim.runs import loop
from mpisim.runs.experiment import Experiment
from mpisim.runs.log.writer import locked
from mpisim.runs.record import Output
from mpisim.runs.stop import COMPLETE, StopSignals
from mpisim.runs.sweep import executor, grid
from mpisim.runs.sweep.points import Point, Spread

Source = str | os.PathLike | Mapping[str, Any]  # a TOML file, or its content


@dataclasses.dataclass(frozen=True, repr=False)
class Result:
    """How a run ended and what it recorded, the same on every rank.

    Attributes
    ----------
    status : {"done", "diverged", "interrupted", "terminated"}
    x : array, shape (d,)
        The last iterate.
    rows : dict of array, shape (rows,)
        The columns of the log by name (docs/reference/log.md).
    attributes : dict
        The attributes of the log: the step size and its source, versions, the experiment.
    log : Path or None
        The log, if one was written.
    """

    status: str
    x: np.ndarray
    rows: dict[str, np.ndarray]
    attributes: dict[str, Any]
    log: Path | None

    @property
    def bits_per_worker(self) -> np.ndarray:
        """Payload bits that a worker has sent on average, shape (rows,)."""
        return self.rows["bits_up"] / self.attributes["workers"]

    def summary(self) -> dict[str, Any]:
        """What was run, and the last row."""
        last = {name: float(self.rows[name][-1]) for name in ("loss", "grad_norm_sq")}
        named = {name: self.attributes[name] for name in ("method", "compressor", "stepsize")}
        rounds = {"rounds": int(self.rows["round"][-1])}
        bits = {"bits_per_worker": float(self.bits_per_worker[-1])}
        log = {} if self.log is None else {"log": str(self.log)}
        return {"status": self.status, **named, **rounds, **last, **bits, **log}

    def __repr__(self) -> str:
        return f"<Result {', '.join(f'{k} {v}' for k, v in self.summary().items())}>"


def run(
    experiment: Experiment | Source,
    comm: Comm | None = None,
    log: str | os.PathLike | None = None,
    quiet: bool = True,
    *,
    force: bool = False,
    resume: bool = False,
    accept_changes: bool = False,
    track: str = "",
) -> Result:
    """Run an experiment, in one process or, under mpirun, on all ranks. Collective.

    Parameters
    ----------
    experiment : Experiment, path or dict
        A TOML file, or its content, will do.
    comm : Comm
        All ranks of the job unless given. Ranks beyond ``run.ranks`` of the experiment sleep.
    log : path
        Where to write the log; nowhere unless given.
    quiet : bool
        Show no progress.
    force, resume : bool
        Overwrite an existing log; continue from its checkpoint, or start where there is nothing.
        A log that is complete stays, and its end is returned.
    accept_changes : bool
        Continue although other code, libraries or processors have computed the rows before.
    track : {"", "tensorboard", "wandb", "mlflow"}
        A tracker that gets the rows, too, as they are written.

    Raises
    ------
    InputError
        If the experiment, or the name of the log, is not valid. A run that diverges raises
        nothing; its status is "diverged". Nor does one that Ctrl-C or SIGTERM stops: its status is
        "interrupted" or "terminated", and the script goes on.
    """
    used = comm or all_ranks()
    path = None if log is None else require_log_name(Path(log), "log")
    how = force, resume, accept_changes, "mpisim.run", quiet
    output = Output(path, *how, keep=True, track=track)

    def body() -> Result:
        made = experiment if isinstance(experiment, Experiment) else _made_of(experiment)
        with StopSignals("resume=True continues") as signals, locked(used, path):
            end = loop.run_on_its_ranks(made, used, output, signals)
        if signals.received and end.status in COMPLETE:  # it came after the last look at it
            signal.raise_signal(signals.received)
        rows, attributes = used.bcast((end.columns, end.attributes))
        return Result(end.status, end.x, rows, attributes, path)

    return all_or_none(used, body)


def _made_of(source: Source) -> Experiment:
    if isinstance(source, Mapping):
        return Experiment.from_dict(copy.deepcopy(dict(source)))
    return Experiment.load(source)


def grid_of(source: Source, settings: Sequence[str]) -> tuple[Path, list[dict[str, Any]]]:
    """The folder and the points of a grid, as `sweep` takes it."""
    if isinstance(source, Mapping):
        return grid.points(copy.deepcopy(dict(source)), list(settings), "logs/sweep")
    return grid.read(Path(source), list(settings))


def sweep(
    source: Source,
    folder: str | os.PathLike | None = None,
    comm: Comm | None = None,
    settings: Sequence[str] = (),
    accept_changes: bool = False,
    ranks_per_run: int = 1,
    jobs: int | Literal["auto"] = 0,
    progress: bool = False,
    separate: bool = False,
) -> list[Point]:
    """Run those experiments of a grid that have no complete log. Collective.

    Parameters
    ----------
    source : path or dict
        A TOML file with a ``[sweep]`` table, or its content.
    folder : path
        The folder of the logs; ``sweep.folder`` unless given.
    settings : list of str
        ``TABLE.KEY=VALUE``, as for ``mpisim sweep --set``.
    accept_changes : bool
        Keep logs that other code, libraries or processors have written.
    ranks_per_run : int
        Ranks of ``comm`` for each run; the others run other points meanwhile. A point with
        ``run.ranks`` has its own number, and runs alone.
    jobs : int or "auto"
        Without mpirun: processes that run points side by side; "auto" is one for each core.
    progress : bool
        Print what ``mpisim sweep`` prints.
    separate : bool
        Run each point for itself, also where points could advance together.

    Returns
    -------
    list of Point
        One for each experiment, with its log and how it ended, in the order of running.
    """
    used = comm or all_ranks()
    named, points = grid_of(source, settings)
    place = Path(folder) if folder is not None else named
    processes = len(usable_cores()) if jobs == "auto" else jobs
    how = "mpisim.sweep", accept_changes, Spread(ranks_per_run, processes, separate=separate)
    quiet = not progress
    return all_or_none(used, lambda: executor.sweep(place, points, used, *how, quiet=quiet))
