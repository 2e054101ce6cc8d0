"""What is there to resume: a checkpoint with the rows of the log before it, or a complete log.

The rows are those of the journal, or, where a run has ended and left none, those of the log. The
budget, ``run.rounds`` and ``run.stop``, may be larger than before, but not smaller: rows are never
cut off.
"""

from __future__ import annotations

import dataclasses
import os
import tomllib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mpisim.core.errors import InputError
from mpisim.core.schema import flat, require
from mpisim.runs import checkpoint, identity
from mpisim.runs.checkpoint import Checkpoint, State
from mpisim.runs.evaluation import End
from mpisim.runs.experiment import Experiment, Run
from mpisim.runs.log import journal, reader
from mpisim.runs.log.journal import Mark
from mpisim.runs.log.schema import DIGEST, LATER, Column, row_type
from mpisim.runs.log.untrusted import DAMAGE


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

    def for_other_ranks(self) -> Found:
        """Without what only rank 0 needs."""
        ended = self.ended and dataclasses.replace(self.ended, columns={}, attributes={})
        return Found(state=self.state, ended=ended)


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
        there, *rows = self._read(log)
        ended = self._ended(there)
        if not any(map(os.path.lexists, (path, checkpoint.former(path)))):
            if ended is None:
                raise InputError(f"{log}: there is no checkpoint to resume from")
            theirs = identity.of_log(ended.attributes)
            identity.require_same(log, theirs, identity.executed_by(self.experiment), self.accept)
            return _complete(log, ended)
        found = self._at_checkpoint(log, rows, ended is not None)
        if ended is not None and found.state.get("round", ended.row["round"]) == ended.row["round"]:
            return _complete(log, ended)
        self._require_own(there, rows)
        self._require_budget(log, found)
        return found

    def find_earlier(self, earlier: Path) -> Found:
        """What the run has to do if it goes on where ``earlier`` ends, a log of a smaller budget.

        It is never complete: the run has a log of its own, which says what the run's budget is.
        """
        found = self._at_checkpoint(earlier, self._read(earlier)[1:])
        self._require_budget(earlier, found)
        note = f"continuing from {earlier}, round {found.state['round']}" if found.state else ""
        return dataclasses.replace(found, note=found.note or note)

    def _read(self, path: Path) -> tuple[reader.Log | None, np.ndarray | None, np.ndarray | None]:
        """The log at ``path``, the rows of its journal, and its own rows, of `row_type`.

        None where there is no such file, or its columns are others.
        """
        try:
            rows = journal.read(path, self.schema)
        except OSError as error:
            raise InputError(f"{journal.path_for(path)}: {error.strerror}") from None
        if not os.path.lexists(path):
            return None, rows, None
        log = reader.read(path)
        logged = np.empty(log.rows, row_type(self.schema))
        if log.columns.keys() != set(logged.dtype.names or ()):
            return log, rows, None
        with np.errstate(invalid="ignore"):  # columns of another type have another digest
            for name, values in log.columns.items():
                logged[name] = values
        return log, rows, logged

    def _at_checkpoint(
        self, log: Path, rows: Sequence[np.ndarray | None], complete: bool = False
    ) -> Found:
        """The last checkpoint that can be used, with the rows before it; or `InputError`.

        rows : of the journal, and of the log; complete : whether the log is
        """
        before: list[np.ndarray] = []

        def fits(found: Checkpoint) -> None:
            mark, k = found.log, found.state.get("round", 0)
            if not isinstance(k, int | np.integer) or k < 0:
                raise InputError(f"damaged: its round is {k!r}")
            expected = np.arange(0, k, self.run.log_every)
            if mark.rows != expected.size:
                raise InputError(f"damaged: {mark.rows} rows before round {k}")
            first = [found[: mark.rows] for found in rows if found is not None]
            before[:] = [one for one in first if journal.digest(one, self.schema) == mark.digest]
            # without a journal the run has ended, and a checkpoint of round 0 is not its last one
            ended = rows[0] is None and rows[1] is not None and not found.state and not complete
            if ended or (found.state and not before):
                raise InputError(f"{log} is not the log it was written with, or has changed since")
            if before and not np.array_equal(before[0]["round"], expected):
                raise InputError(f"{log} lacks rows before round {k}")

        path = checkpoint.path_for(log)
        found, note = checkpoint.load(path, self.ours, fits, self.accept)
        if not found.state:
            return Found(note or f"{log}: stopped before its first checkpoint; starting at round 0")
        return Found(note, found.state, found.log, before[0], found.changes)

    def _require_own(self, log: reader.Log | None, rows: Sequence[np.ndarray | None]) -> None:
        """`InputError` if what has the log's name is not what this run has written there."""
        if log is None:
            return
        written, logged = rows
        if logged is None or not _same(log.config, self.experiment):
            raise InputError(f"{log.path}: is the log of another experiment")
        if log.attrs.get(DIGEST) != journal.digest(logged, self.schema):
            raise InputError(f"{log.path}: has changed since it was written")
        both = len(logged) if written is None else min(len(logged), len(written))
        if written is not None and logged[:both].tobytes() != written[:both].tobytes():
            raise InputError(f"{log.path}: is the log of another run")

    def _ended(self, log: reader.Log | None) -> End | None:
        """How the run ended, from a log of this experiment that its budget ends; None if not."""
        if log is None or not _same(log.config, self.experiment):
            return None
        status, stopped_by = (str(log.attrs.get(name, "")) for name in ("status", "stopped_by"))
        try:
            if status != "diverged" and not (status == "done" and _is_whole(log, self.run)):
                return None
            x = reader.last_iterate(log.path)
            last = {name: values[-1].item() for name, values in log.columns.items()}
            expected = {name for name, *_ in self.schema} - (LATER - log.columns.keys())
            columns = {name: log.columns[name] for name, *_ in self.schema if name in expected}
        except (InputError, *DAMAGE):
            return None
        if x is None:
            return None
        return End(status, last, x, stopped_by, columns, log.attrs)

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
    note = f"{log}: complete, {ended.status} at round {ended.row['round']}; there is nothing to do"
    return Found(note, ended=ended)


def _is_whole(log: reader.Log, run: Run) -> bool:
    """Whether the last row is where the budget ends the run."""
    last, first = int(log.columns["round"][-1]), run.stop.first_row(log.columns, log.n)
    if first is None:
        return last == run.rounds
    return first == log.rows - 1 and run.logs(last)


def _same(config: dict, experiment: Experiment) -> bool:
    """Whether a log's experiment is this one, but for what may differ on resume."""
    ours, theirs = flat(tomllib.loads(experiment.to_toml())), flat(config)
    return identity.must_agree(ours) == identity.must_agree(theirs)
