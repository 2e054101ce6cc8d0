"""The output of a run: its log, its checkpoints and its progress."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

from mpisim.comm.job import on_first
from mpisim.core.schema import require
from mpisim.runs import checkpoint, snapshot
from mpisim.runs.evaluation import Evaluator, Row
from mpisim.runs.log.schema import columns
from mpisim.runs.log.writer import LogWriter
from mpisim.runs.progress import Progress
from mpisim.runs.provenance import attributes_of
from mpisim.runs.setup import Setup


@dataclasses.dataclass(frozen=True)
class Output:
    """Where a run writes its log (None: nowhere), and what to do with an existing one.

    quiet : show no progress
    keep : also keep the rows in memory
    """

    log: Path | None
    force: bool = False
    resume: bool = False
    command: str = ""
    quiet: bool = False
    keep: bool = False


class Record:
    """The record of one run. All ranks have one, but only rank 0 writes."""

    def __init__(self, setup: Setup, evaluator: Evaluator, output: Output):
        self.setup, self.evaluator, self.output = setup, evaluator, output
        self.path = checkpoint.path_for(output.log) if output.log is not None else None
        self.log: LogWriter | None = None
        self.progress: Progress | None = None
        self.attributes: dict[str, Any] = {}
        more = [column for metric in setup.metrics for column in metric.columns]
        self._schema = columns(setup.reference is not None, more)
        self._rows: list[tuple] = []

    def begin(self) -> tuple[int, np.ndarray]:
        """Open the log; returns the first round and its x, from the checkpoint on resume."""
        k, x = 0, self.setup.problem.initial_point()
        if self.output.resume and self.path is not None:
            k, x = self._restore(self.path)
        self._open_log(k)
        if self.setup.star.is_server and not self.output.quiet:
            self.progress = Progress(self.setup.experiment.run.rounds)
        return k, x

    def row(self, row: Row, x: np.ndarray, metrics: np.ndarray) -> None:
        """Record the row of x^k."""
        if self.log is not None or self.output.keep:
            reference: tuple[float, ...] = ()
            if self.setup.reference is not None:
                x_star, f_star = self.setup.reference
                reference = (row.loss - f_star, float((x - x_star) @ (x - x_star)))
            values = (row.round, row.loss, row.grad_norm_sq, *reference, *row.bits)
            values = (*values, row.oracle_calls, *row.seconds, *metrics.tolist())
            if self.log is not None:
                self.log.row(values)
            if self.output.keep:
                self._rows.append(values)
        if self.progress is not None:
            bits = row.bits[0] / self.setup.star.n
            self.progress.update(row.round, row.loss, row.grad_norm_sq, bits)

    def checkpoint(self, k: int, x: np.ndarray) -> None:
        """Save x^k and all state before round k. Collective."""
        if self.path is None:
            return
        state = snapshot.collect(self.setup, self.evaluator, k, x)
        if state is not None:
            assert self.log is not None
            self.log.flush()
            checkpoint.save(self.path, self.setup.identity, state)

    def close(self, status: str, x: np.ndarray | None) -> None:
        """End log and progress with a status; ``x``: the last iterate, unless the run failed."""
        if self.progress is not None:
            self.progress.close(status)
        if self.log is not None:
            bits_up = self.setup.star.ledger.worker_bits_up
            self.log.finish(status, x, {"rows": self.setup.rows, "bits_up": bits_up})

    def columns(self) -> dict[str, np.ndarray]:
        """The kept rows, by column."""
        values = zip(*self._rows, strict=True) if self._rows else [()] * len(self._schema)
        named = zip(self._schema, values, strict=True)
        return {name: np.array(column, kind) for (name, kind, *_), column in named}

    def _restore(self, path: Path) -> tuple[int, np.ndarray]:
        """Restore all state on this rank; returns the round to resume at and its x."""
        setup = self.setup
        content, note = on_first(setup.star.side, lambda: checkpoint.load(path, setup.identity))
        if note and setup.star.is_server:
            print(f"mpisim: {note}", file=sys.stderr, flush=True)
        k, x = snapshot.put_back(setup, self.evaluator, checkpoint.state_of(content))
        last = setup.experiment.run.rounds
        require(k <= last, "run.rounds", last, f"at least {k}, the round of {path}")
        return k, x

    def _open_log(self, first: int) -> None:
        setup, output, schema = self.setup, self.output, self._schema
        hosts = setup.star.side.gather(MPI.Get_processor_name())
        if hosts is None:
            return
        self.attributes = attributes_of(setup, output.command, hosts)
        if output.log is not None and output.resume:
            every = setup.experiment.run.log_every
            self.log = LogWriter.reopen(output.log, schema, first, every, self.attributes)
        elif output.log is not None:
            self.log = LogWriter.create(output.log, self.attributes, schema, output.force)
            checkpoint.discard(checkpoint.path_for(output.log))
