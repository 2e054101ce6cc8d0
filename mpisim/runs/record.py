"""The output of a run: its log, its checkpoints and its progress."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mpisim.comm.job import on_first, together
from mpisim.core.errors import InputError, OutputError
from mpisim.core.files import make_folder
from mpisim.core.terminal import one_line, report
from mpisim.runs import checkpoint
from mpisim.runs.attributes import PENDING, Durations, attributes_of
from mpisim.runs.checkpoint import State
from mpisim.runs.evaluation import End, Row
from mpisim.runs.host import Place, here
from mpisim.runs.log import journal
from mpisim.runs.log.journal import Mark
from mpisim.runs.log.schema import columns, row_type
from mpisim.runs.log.writer import LogWriter, lock_of, require_new
from mpisim.runs.progress import Progress
from mpisim.runs.rehearsal import Rehearsal
from mpisim.runs.resume import Found, Resumption, nothing
from mpisim.runs.setup import Setup


@dataclasses.dataclass(frozen=True)
class Output:
    """Where a run writes its log (None: nowhere), and what to do with an existing one.

    force : replace it; with resume: where it cannot be resumed
    resume : go on from its checkpoint; where there is nothing, start
    accept : go on although other code, libraries or processors executed the rows before
    quiet : show no progress
    closing : whether the progress ends with a line
    keep : also keep the rows in memory
    earlier : with resume, and where there is no log yet: the log of the same experiment with a
        smaller budget that it goes on from; that log stays as it is
    side_by_side : how many runs of a sweep run at the same time
    expected : called on rank 0 with the seconds that the run will take, when it has rehearsed
    """

    log: Path | None
    force: bool = False
    resume: bool = False
    accept: bool = False
    command: str = ""
    quiet: bool = False
    closing: bool = True
    keep: bool = False
    earlier: Path | None = None
    side_by_side: int = 1
    expected: Callable[[float], None] | None = None


class Record:
    """The record of one run. All ranks have one, but only rank 0 writes."""

    def __init__(self, setup: Setup, output: Output):
        self.setup, self.output = setup, output
        self.path = checkpoint.path_for(output.log) if output.log is not None else None
        self.log: LogWriter | None = None
        self.ended: End | None = None  # by the log, which was complete
        self._found = Found()
        self.progress: Progress | None = None
        self.attributes: dict[str, Any] = {}
        self.durations = Durations(setup.clock, setup.state.evaluator.path)
        more = [column for metric in setup.state.metrics for column in metric.columns]
        self._schema = columns(setup.reference is not None, more)
        self._rows: list[tuple] = []

    def begin(self) -> None:
        """Open the log, and restore the checkpoint on resume.

        A complete log is not opened; then `ended` is set.
        """
        side = self.setup.star.side
        if self.output.resume and self.output.log is not None:
            state, ended = on_first(side, self._find)
            whole = self._found.ended or ended
            if whole is not None:
                self.ended = dataclasses.replace(whole, before=True)
                return
            if state:
                together(side, lambda: self.setup.state.load(state))
                self.durations.resume()
        places = side.gather(here())
        on_first(side, lambda: self._open_log(places))
        if self.setup.star.is_server and not self.output.quiet:
            self.progress = Progress(self.setup.experiment.run.rounds)

    def rehearsed(self, first: int, rehearsal: Rehearsal) -> None:
        """Round ``first`` is next."""
        self.durations.rehearsed()
        run, told = self.setup.run, self.output.expected
        if told is not None and self.setup.star.is_server:
            told(rehearsal.seconds(run.rounds - first, run.log_every or 1))

    def row(self, row: Row, metrics: np.ndarray) -> None:
        """Record a row."""
        if self.log is not None or self.output.keep:
            values = (row.round, row.loss, row.grad_norm_sq, *row.reference, *row.bits)
            values = (*values, row.oracle_calls, *row.seconds, *metrics.tolist())
            if self.log is not None:
                self.log.row(values)
            if self.output.keep:
                self._rows.append(values)
        if self.progress is not None:
            bits = row.bits[0] / self.setup.star.n
            self.progress.update(row.round, row.loss, row.grad_norm_sq, bits)

    def checkpoint(self) -> None:
        """Save all state before the next round. Collective."""
        if self.path is None:
            return
        state = self.setup.state.dump()
        if state is not None:
            assert self.log is not None
            mark = self.log.mark(state["round"])
            checkpoint.save(self.path, self.setup.identity, state, mark)

    def close(self, end: End | None) -> None:
        """End log and progress; None: the run failed."""
        status, x = ("failed", None) if end is None else (end.status, end.x)
        if self.progress is not None:
            self.progress.close(status if self.output.closing else "")
        if self.attributes:
            self.attributes |= self.durations.attributes()
            self.attributes["stopped_by"] = end.stopped_by if end else ""
        if self.log is not None:
            workers = {"rows": self.setup.rows, "bits_up": self.setup.star.ledger.worker_bits_up}
            known = {name: self.attributes[name] for name in (*PENDING, "stopped_by")}
            self.log.finish(status, x, workers, known)

    def columns(self) -> dict[str, np.ndarray]:
        """The kept rows, by column."""
        values = zip(*self._rows, strict=True) if self._rows else [()] * len(self._schema)
        named = zip(self._schema, values, strict=True)
        return {name: np.array(column, kind) for (name, kind, *_), column in named}

    def _find(self) -> tuple[State, End | None]:
        """On rank 0: what there is to resume, without what only rank 0 needs."""
        log, earlier, setup = self.output.log, self.output.earlier, self.setup
        assert log is not None
        earlier = None if os.path.lexists(log) else earlier
        if self.output.force and earlier is None and nothing(log):
            return {}, None  # a new point of a sweep, say: there is nothing to tell
        run = Resumption(
            setup.experiment, setup.run, setup.identity, self._schema, self.output.accept
        )
        try:
            if earlier is None:
                found = run.find(log)
            else:
                with lock_of(earlier):
                    found = run.find_earlier(earlier)
        except InputError as error:
            if not self.output.force:
                raise InputError(f"{error}; --force starts over") from None
            found = Found(f"{error}; starting over")
        if found.note:
            report(f"mpisim: {one_line(found.note)}")
        self._found = found
        ended = found.ended
        if ended is not None:
            ended = dataclasses.replace(ended, columns={}, attributes={})
        return found.state, ended

    def _open_log(self, places: list[Place] | None) -> None:
        """On rank 0: the log, with the rows before the checkpoint on resume.

        These are those of the log that it replaces, or of an earlier one, which stays. The
        checkpoint comes first: it fits the rows that are there, and those that replace them. One
        without state says that the run starts at round 0.
        """
        setup, output, found = self.setup, self.output, self._found
        self.attributes = attributes_of(setup, output.command, places or [])
        self.attributes["side_by_side"] = output.side_by_side
        if found.state:
            self.attributes["resumed"] = int(found.state["round"])
        if output.log is None or self.path is None:
            return
        if not (output.force or output.resume):
            require_new(output.log)
        goes_on = found.mark is not None and (output.earlier is None or os.path.lexists(output.log))
        attributes, rows = self.attributes, np.empty(0, row_type(self._schema))
        if found.mark is not None and found.rows is not None:
            before, rows = found.mark.attributes, found.rows
            others = int(before.get("side_by_side", 1))
            attributes["side_by_side"] = max(others, output.side_by_side)
            attributes = before | attributes | self._changes(before)
        mark = Mark(len(rows), journal.digest(rows, self._schema), attributes)
        try:
            make_folder(output.log.parent)
            if not goes_on:
                checkpoint.former(self.path).unlink(missing_ok=True)
            checkpoint.save(self.path, setup.identity, found.state, mark, keep=False)
        except OSError as error:
            raise InputError(f"{output.log}: cannot be written: {error.strerror}") from None
        except OutputError as error:
            raise InputError(str(error)) from None
        self.log = LogWriter(output.log, attributes, self._schema, rows)
        self._found = Found()  # the rows are on the disk

    def _changes(self, before: dict[str, Any]) -> dict[str, str]:
        """The attribute ``accepted_changes``, a line for each resume, where there is one."""
        found = self._found
        if not found.changes:
            return {}
        line = f"round {found.state['round']}: {found.changes}"
        lines = before.get("accepted_changes", "").splitlines()
        return {"accepted_changes": "\n".join([*lines, line])}
