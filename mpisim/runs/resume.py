"""What is there to resume: a checkpoint with the rows of the log before it, or a complete log.

The budget, ``run.rounds`` and ``run.stop``, may be larger than before, but not smaller: rows are
never cut off.
"""

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
from mpisim.core.schema import flat, require
from mpisim.runs import checkpoint, identity
from mpisim.runs.checkpoint import Checkpoint, State
from mpisim.runs.end import End
from mpisim.runs.evaluation import Row
from mpisim.runs.experiment import Experiment, Run
from mpisim.runs.log import reader
from mpisim.runs.log.isolated import DAMAGE, run_isolated
from mpisim.runs.log.mark import Mark
from mpisim.runs.log.schema import LATER, REFERENCE, Column, row_type
from mpisim.runs.log.untrusted import group_of, names, opened


@dataclasses.dataclass(frozen=True)
class Found:
    """What there is to resume.

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


@dataclasses.dataclass(frozen=True)
class Resumption:
    """A run that goes on from what is there.

    run : the experiment's, with how often rows are logged; ours : the run's identity; schema : of
    its log; accept : whether what executes it may differ
    """

    experiment: Experiment
    run: Run
    ours: dict[str, str]
    schema: Sequence[Column]
    accept: bool = False

    def find(self, log: Path) -> Found:
        """What the run has to do if it resumes ``log``.

        Raises `InputError` if the log or its checkpoints are there, but cannot be resumed by it.
        """
        path = checkpoint.path_for(log)
        if nothing(log):
            return Found(f"{log}: there is nothing to resume; starting at round 0")
        ended = _ended(log, self.experiment, self.run, self.schema)
        if not any(map(os.path.lexists, (path, checkpoint.former(path)))):
            if ended is None:
                raise InputError(f"{log}: there is no checkpoint to resume from")
            theirs = identity.of_log(ended.attributes)
            identity.require_same(log, theirs, identity.executed_by(self.experiment), self.accept)
            return _complete(log, ended)
        found = self._at_checkpoint(log)
        if ended is not None and found.state.get("round", ended.row.round) == ended.row.round:
            return _complete(log, ended)
        self._require_budget(log, found)
        return found

    def find_earlier(self, earlier: Path) -> Found:
        """What the run has to do if it goes on where ``earlier`` ends, a log of a smaller budget.

        It is never complete: the run has a log of its own, which says what the run's budget is.
        """
        found = self._at_checkpoint(earlier)
        self._require_budget(earlier, found)
        note = f"continuing from {earlier}, round {found.state['round']}" if found.state else ""
        return dataclasses.replace(found, note=found.note or note)

    def _at_checkpoint(self, log: Path) -> Found:
        """The last checkpoint that can be used, with the rows before it; or `InputError`."""
        kept: list[tuple[np.ndarray, Mark]] = []

        def fits(found: Checkpoint) -> None:
            kept[:] = [_rows_before(log, found, self.schema, self.run)]

        path = checkpoint.path_for(log)
        found, note = checkpoint.load(path, self.ours, fits, self.accept)
        if not found.state:
            return Found(note or f"{log}: stopped before its first checkpoint; starting at round 0")
        [(rows, mark)] = kept
        return Found(note, found.state, mark, rows, found.changes)

    def _require_budget(self, log: Path, found: Found) -> None:
        """`InputError` if a run with this budget would have ended before the checkpoint."""
        if found.rows is None:
            return
        run, k = self.run, int(found.state["round"])
        allowed = f"at least {k}, the round of {checkpoint.path_for(log)}"
        require(k <= run.rounds, "run.rounds", run.rounds, allowed)
        row = run.stop.first_row(found.rows, int(self.ours["workers"]))
        if row is not None:
            ended = int(found.rows["round"][row])
            raise InputError(
                f"{log}: run.stop is met at round {ended}, before its checkpoint of {k}"
            )


def nothing(log: Path) -> bool:
    """Whether there is neither a log nor a checkpoint."""
    path = checkpoint.path_for(log)
    return not any(map(os.path.lexists, (log, path, checkpoint.former(path))))


def _complete(log: Path, ended: End) -> Found:
    note = f"{log}: complete, {ended.status} at round {ended.row.round}; there is nothing to do"
    return Found(note, ended=ended)


def _rows_before(
    log: Path, found: Checkpoint, schema: Sequence[Column], run: Run
) -> tuple[np.ndarray, Mark]:
    """The rows of the log before a checkpoint, and their mark; `InputError` if they do not fit."""
    mark, k = Mark.of_state(found.log), found.state.get("round", 0)
    if not isinstance(k, int | np.integer) or k < 0:
        raise InputError(f"damaged: its round is {k!r}")
    expected = np.arange(0, k, run.log_every)
    if mark.rows != expected.size:
        raise InputError(f"damaged: {mark.rows} rows before round {k}")
    if not mark.rows:
        return np.empty(0, row_type(schema)), mark
    rows, mark = mark.read(log, schema)
    if not np.array_equal(rows["round"], expected):
        raise InputError(f"{log} lacks rows before round {k}")
    return rows, mark


def _ended(log: Path, experiment: Experiment, run: Run, schema: Sequence[Column]) -> End | None:
    """How the run ended, from a log of this experiment that its budget ends; None if it is none."""
    try:
        found = reader.read(log)
        x = run_isolated(log, lambda: _last_iterate(log))
    except (InputError, *DAMAGE):
        return None
    status, stopped_by = str(found.attrs.get("status", "")), str(found.attrs.get("stopped_by", ""))
    complete = status == "diverged" or (status == "done" and _is_whole(found, run))
    if not _same(found.config, experiment) or not complete:
        return None

    def value(name: str) -> float:
        return found.columns[name][-1].item()

    schema = [column for column in schema if column[0] not in LATER - found.columns.keys()]
    known = {name for name, *_ in schema}
    row = Row(
        int(value("round")),
        value("loss"),
        value("grad_norm_sq"),
        tuple(value(name) for name, *_ in REFERENCE if name in known),
        int(value("oracle_calls")),
        tuple(int(value(name)) for name in BITS if name in known),
        [value(f"time_{phase}") for phase in PHASES],
        signal=0,
        checkpoint=False,
    )
    columns = {name: found.columns[name] for name, *_ in schema}
    return End(status, row, x, stopped_by, columns, found.attrs)


def _is_whole(log: reader.Log, run: Run) -> bool:
    """Whether the last row is where the budget ends the run."""
    last, first = int(log.columns["round"][-1]), run.stop.first_row(log.columns, log.n)
    if first is None:
        return last == run.rounds
    return first == log.rows - 1 and run.logs(last)


def _last_iterate(log: Path) -> np.ndarray:
    with opened(log) as file:
        final = group_of(file, "final")
        if final is None or "x" not in names(final):
            raise InputError(f"{log}: has no last iterate")
        return final["x"][:]


def _same(config: dict, experiment: Experiment) -> bool:
    """Whether a log's experiment is this one, but for what may differ on resume."""
    ours, theirs = flat(tomllib.loads(experiment.to_toml())), flat(config)
    return identity.must_agree(ours) == identity.must_agree(theirs)
