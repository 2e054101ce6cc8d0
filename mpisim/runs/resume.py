"""What is there to resume: a checkpoint with the rows of the log before it, or a complete log."""

from __future__ import annotations

import dataclasses
import os
import tomllib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mpisim.comm.clock import PHASES
from mpisim.comm.ledger import COLUMNS as BITS
from mpisim.core.errors import InputError
from mpisim.core.schema import flat
from mpisim.runs import checkpoint, identity
from mpisim.runs.checkpoint import Checkpoint, State
from mpisim.runs.end import End
from mpisim.runs.evaluation import Row
from mpisim.runs.experiment import Experiment
from mpisim.runs.log import reader
from mpisim.runs.log.isolated import DAMAGE, run_isolated
from mpisim.runs.log.mark import Mark
from mpisim.runs.log.schema import Column, row_type
from mpisim.runs.log.untrusted import group_of, names, opened


@dataclasses.dataclass(frozen=True)
class Found:
    """What `find` has found.

    note : for the user; empty where there is nothing to say
    state, mark, rows : of the checkpoint, and the rows of the log before its round; no state where
        the run starts at round 0
    changes : what executed the run before, and was accepted to differ now, as text
    ended : how the run ended, if its log is complete
    """

    note: str = ""
    state: State = dataclasses.field(default_factory=dict)
    mark: Mark | None = None
    rows: np.ndarray | None = None
    changes: str = ""
    ended: End | None = None


def find(
    log: Path,
    experiment: Experiment,
    ours: dict[str, str],
    schema: Sequence[Column],
    accept: bool = False,
) -> Found:
    """What a run that resumes ``log`` has to do.

    ours : the run's identity; accept : whether what executes it may differ

    Raises `InputError` if the log or its checkpoints are there, but cannot be resumed by it.
    """
    path, run = checkpoint.path_for(log), experiment.run
    if nothing(log):
        return Found(f"{log}: there is nothing to resume; starting at round 0")
    if not any(map(os.path.lexists, (path, checkpoint.former(path)))):
        ended = _ended(log, experiment, schema)
        if ended is None:
            raise InputError(f"{log}: there is no checkpoint to resume from")
        theirs = identity.of_log(ended.attributes)
        identity.require_same(log, theirs, identity.executed_by(experiment), accept)
        return _complete(log, ended)
    kept: list[tuple[np.ndarray, Mark]] = []

    def fits(found: Checkpoint) -> None:
        kept[:] = [_rows_before(log, found, schema, run.log_every)]

    found, note = checkpoint.load(path, ours, fits, accept)
    ended = _ended(log, experiment, schema)
    if ended is not None and found.state.get("round", ended.row.round) == ended.row.round:
        return _complete(log, ended)
    if not found.state:
        return Found(note or f"{log}: stopped before its first checkpoint; starting at round 0")
    [(rows, mark)] = kept
    return Found(note, found.state, mark, rows, found.changes)


def nothing(log: Path) -> bool:
    """Whether there is neither a log nor a checkpoint."""
    path = checkpoint.path_for(log)
    return not any(map(os.path.lexists, (log, path, checkpoint.former(path))))


def _complete(log: Path, ended: End) -> Found:
    note = f"{log}: complete, {ended.status} at round {ended.row.round}; there is nothing to do"
    return Found(note, ended=ended)


def _rows_before(
    log: Path, found: Checkpoint, schema: Sequence[Column], every: int
) -> tuple[np.ndarray, Mark]:
    """The rows of the log before a checkpoint, and their mark; `InputError` if they do not fit."""
    mark, k = Mark.of_state(found.log), found.state.get("round", 0)
    if not isinstance(k, int | np.integer) or k < 0:
        raise InputError(f"damaged: its round is {k!r}")
    expected = np.arange(0, k, every)
    if mark.rows != expected.size:
        raise InputError(f"damaged: {mark.rows} rows before round {k}")
    if not mark.rows:
        return np.empty(0, row_type(schema)), mark
    rows, mark = mark.read(log, schema)
    if not np.array_equal(rows["round"], expected):
        raise InputError(f"{log} lacks rows before round {k}")
    return rows, mark


def _ended(log: Path, experiment: Experiment, schema: Sequence[Column]) -> End | None:
    """How the run ended, from a complete log of this experiment; None if it is none."""
    try:
        found = reader.read(log)
        x = run_isolated(log, lambda: _last_iterate(log))
    except (InputError, *DAMAGE):
        return None
    last, status = int(found.columns["round"][-1]), str(found.attrs.get("status", ""))
    complete = status == "diverged" or (status == "done" and last == experiment.run.rounds)
    if not complete or not _same(found.config, experiment):
        return None

    def value(name: str) -> float:
        return found.columns[name][-1].item()

    row = Row(
        last,
        value("loss"),
        value("grad_norm_sq"),
        int(value("oracle_calls")),
        tuple(int(value(name)) for name in BITS),
        [value(f"time_{phase}") for phase in PHASES],
        signal=0,
        checkpoint=False,
    )
    columns = {name: found.columns[name] for name, *_ in schema}
    return End(status, row, x, columns, found.attrs)


def _last_iterate(log: Path) -> np.ndarray:
    with opened(log) as file:
        final = group_of(file, "final")
        if final is None or "x" not in names(final):
            raise InputError(f"{log}: has no last iterate")
        return final["x"][:]


def _same(config: dict, experiment: Experiment) -> bool:
    """Whether a log's experiment is this one, but for what may differ on resume."""
    ours, theirs = flat(tomllib.loads(experiment.to_toml())), flat(config)
    free = dict.fromkeys(identity.FREE)
    return ours | free == theirs | free
