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
from mpisim.runs import checkpoint
from mpisim.runs.experiment import Experiment, Run
from mpisim.runs.identity import executed_by, must_agree, of_log, require_same
from mpisim.runs.log import journal, reader
from mpisim.runs.log.schema import Schema, row_type
from mpisim.runs.log.untrusted import DAMAGE
from mpisim.runs.metrics import End
from mpisim.runs.stop import COMPLETE

# facts of an identity that the experiment's tables do not have, and a log's attributes with them
HELD = {"workers": "workers", "problem identity": "problem"}


@dataclasses.dataclass(frozen=True)
class Start:
    """Where a run starts: at round 0, at a checkpoint, or nowhere, as it has ended.

    note : for the user; empty where there is nothing to say
    state, mark, rows : of the checkpoint, and the rows of the log before its round; no state where
        the run starts at round 0
    changes : what executed the run before, and was accepted to differ now, as text
    ended : how the run ended, if its log is complete
    """

    note: str = ""
    state: checkpoint.State = dataclasses.field(default_factory=dict)
    mark: journal.Mark | None = None
    rows: np.ndarray | None = None
    changes: str = ""
    ended: End | None = None


@dataclasses.dataclass(frozen=True)
class Resumption:
    """A run that goes on from what is there.

    run : the experiment's, with how often rows are logged; identity : the run's; schema : of its
    log; accept : whether what executes it may differ
    """

    experiment: Experiment
    run: Run
    identity: dict[str, str]
    schema: Schema
    accept: bool = False

    def find(self, log: Path) -> Start:
        """What the run has to do if it resumes ``log``.

        Raises `InputError` if the log or its checkpoints are there, but cannot be resumed by it.
        """
        path = checkpoint.path_for(log)
        if is_absent(log):
            return Start(f"{log}: there is nothing to resume; starting at round 0")
        content, *rows = self._read(log)
        ended = self._ended(content)
        if any(map(os.path.lexists, (path, checkpoint.former(path)))):
            start = self._at_checkpoint(log, rows, ended is not None)
            if ended is None or start.state.get("round", ended.row["round"]) != ended.row["round"]:
                self._require_of_this_run(content, rows)
                self._require_budget(log, start)
                return start
        elif ended is None:
            raise InputError(f"{log}: there is no checkpoint to resume from")
        else:
            has = ended.attributes
            held = {fact: str(has[name]) for fact, name in HELD.items() if name in has}
            now = executed_by(self.experiment) | {fact: self.identity[fact] for fact in held}
            require_same(log, of_log(has) | held, now, self.accept)
        complete = f"{log}: complete, {ended.status} at round {ended.row['round']}"
        return Start(f"{complete}; there is nothing to do", ended=ended)

    def find_earlier(self, earlier: Path) -> Start:
        """What the run has to do if it goes on where ``earlier`` ends, a log of a smaller budget.

        It is never complete: the run has a log of its own, which says what the run's budget is.
        """
        start = self._at_checkpoint(earlier, self._read(earlier)[1:])
        self._require_budget(earlier, start)
        note = f"continuing from {earlier}, round {start.state['round']}" if start.state else ""
        return dataclasses.replace(start, note=start.note or note)

    def _read(self, path: Path) -> tuple[reader.Log | None, np.ndarray | None, np.ndarray | None]:
        """The log at ``path``, the rows of its journal, and those of the log, of `row_type`.

        None where there is no such file, or its columns are others.
        """
        try:
            rows = journal.read(path, self.schema)
        except OSError as error:
            raise InputError(f"{journal.path_for(path)}: {error.strerror}") from None
        if not os.path.lexists(path):
            return None, rows, None
        log = reader.read(path)
        logged = log.table()
        return log, rows, logged if logged.dtype == row_type(self.schema) else None

    def _at_checkpoint(
        self, log: Path, rows: Sequence[np.ndarray | None], complete: bool = False
    ) -> Start:
        """The last checkpoint that can be used, with the rows before it; or `InputError`.

        rows : of the journal, and of the log; complete : whether the log is
        """
        before: list[np.ndarray] = []

        def fits(last: checkpoint.Checkpoint) -> None:
            mark, k = last.log, last.state.get("round", 0)
            if not isinstance(k, int | np.integer) or k < 0:
                raise InputError(f"damaged: its round is {k!r}")
            expected = np.arange(0, k, self.run.log_every)
            if mark.rows != expected.size:
                raise InputError(f"damaged: {mark.rows} rows before round {k}")
            first = [part[: mark.rows] for part in rows if part is not None]
            before[:] = [part for part in first if journal.digest(part) == mark.digest]
            # without a journal the run has ended, and a checkpoint of round 0 is not its last one
            ended = rows[0] is None and rows[1] is not None and not last.state and not complete
            if ended or (last.state and not before):
                raise InputError(f"{log} is not the log it was written with, or has changed since")
            if before and not np.array_equal(before[0]["round"], expected):
                raise InputError(f"{log} lacks rows before round {k}")

        last, note = checkpoint.load(checkpoint.path_for(log), self.identity, fits, self.accept)
        if not last.state:
            return Start(note or f"{log}: stopped before its first checkpoint; starting at round 0")
        return Start(note, last.state, last.log, before[0], last.changes)

    def _require_of_this_run(
        self, log: reader.Log | None, rows: Sequence[np.ndarray | None]
    ) -> None:
        """`InputError` if what has the log's name is not what this run has written there."""
        if log is None:
            return
        written, logged = rows
        if logged is None or not self._is_of_this_experiment(log):
            raise InputError(f"{log.path}: is the log of another experiment")
        both = len(logged) if written is None else min(len(logged), len(written))
        if written is not None and logged[:both].tobytes() != written[:both].tobytes():
            raise InputError(f"{log.path}: is the log of another run")

    def _is_of_this_experiment(self, log: reader.Log) -> bool:
        """Whether a log's experiment is this one, but for what may differ on resume."""
        here = tomllib.loads(self.experiment.to_toml())
        return must_agree(flat(log.config)) == must_agree(flat(here))

    def _ended(self, log: reader.Log | None) -> End | None:
        """How the run ended, from a log of this experiment that its budget ends; None if not."""
        if log is None or not self._is_of_this_experiment(log):
            return None
        run, status = self.run, log.attrs.get("status")
        try:
            last = {name: values[-1].item() for name, values in log.columns.items()}
            met = run.stop.first_row(log.columns, log.n)
            k, early = last["round"], met is not None or status == "diverged"
            ends = k == run.rounds or (early and k < run.rounds and run.logs(k))
            if not (status in COMPLETE and ends and met in (None, log.rows - 1)):
                return None
            x = reader.last_iterate(log.path)
            columns = {name: log.columns[name] for name, *_ in self.schema}
        except (InputError, *DAMAGE):
            return None
        stopped_by = str(log.attrs.get("stopped_by", ""))
        return None if x is None else End(str(status), last, x, stopped_by, columns, log.attrs)

    def _require_budget(self, log: Path, start: Start) -> None:
        """`InputError` if a run with this budget would have ended before the checkpoint."""
        if start.rows is None:
            return
        run, k = self.run, int(start.state["round"])
        allowed = f"at least {k}, the round of {checkpoint.path_for(log)}"
        require(k <= run.rounds, "run.rounds", run.rounds, allowed)
        row = run.stop.first_row(start.rows, int(self.identity["workers"]))
        if row is not None:
            met = f"run.stop is met at round {int(start.rows['round'][row])}"
            raise InputError(f"{log}: {met}, before its checkpoint of {k}")


def is_absent(log: Path) -> bool:
    """Whether there is neither a log nor a checkpoint."""
    path = checkpoint.path_for(log)
    return not any(map(os.path.lexists, (log, path, checkpoint.former(path))))
