"""What a run leaves behind: its log and its checkpoints, and its progress while it lasts."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

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
    """Where a run writes: the log (None: nowhere), and what to do with one that is there.

    quiet : show no progress
    """

    log: Path | None
    force: bool = False
    resume: bool = False
    command: str = ""
    quiet: bool = False


class Record:
    """The record of one run. All ranks have one; rank 0 alone writes."""

    def __init__(self, setup: Setup, evaluator: Evaluator, output: Output):
        self.setup, self.evaluator, self.output = setup, evaluator, output
        self.path = checkpoint.path_for(output.log) if output.log is not None else None
        self.log: LogWriter | None = None
        self.progress: Progress | None = None

    def begin(self) -> tuple[int, np.ndarray]:
        """Open the log; the first round and its x, from the checkpoint of a resumed run."""
        k, x = 0, self.setup.problem.initial_point()
        if self.output.resume and self.path is not None:
            k, x = self._restore()
        self.log = self._open_log(k)
        if self.setup.star.is_server and not self.output.quiet:
            self.progress = Progress(self.setup.experiment.run.rounds)
        return k, x

    def row(self, row: Row, x: np.ndarray, metrics: np.ndarray) -> None:
        """The row of x^k."""
        if self.log is not None:
            reference: tuple[float, ...] = ()
            if self.setup.reference is not None:
                x_star, f_star = self.setup.reference
                reference = (row.loss - f_star, float((x - x_star) @ (x - x_star)))
            values = (row.round, row.loss, row.grad_norm_sq, *reference, *row.bits)
            self.log.row((*values, row.oracle_calls, *row.seconds, *metrics.tolist()))
        if self.progress is not None:
            bits = row.bits[0] / self.setup.star.n
            self.progress.update(row.round, row.loss, row.grad_norm_sq, bits)

    def checkpoint(self, k: int, x: np.ndarray) -> None:
        """Keep x^k and all state before round k. Collective."""
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
            setup = self.setup
            workers = {"rows": setup.rows, "bits_up": setup.star.ledger.worker_bits_up}
            self.log.finish(status, x, workers)

    def _restore(self) -> tuple[int, np.ndarray]:
        """The round to resume at and its x, with all state put back on this rank."""
        setup, path = self.setup, self.path
        assert path is not None
        content, note = on_first(setup.star.side, lambda: checkpoint.load(path, setup.identity))
        if note and setup.star.is_server:
            print(f"mpisim: {note}", file=sys.stderr, flush=True)
        k, x = snapshot.put_back(setup, self.evaluator, checkpoint.state_of(content))
        last = setup.experiment.run.rounds
        require(k <= last, "run.rounds", last, f"at least {k}, the round of {path}")
        return k, x

    def _open_log(self, first_round: int) -> LogWriter | None:
        setup, output = self.setup, self.output
        hosts = setup.star.side.gather(MPI.Get_processor_name())
        if output.log is None or hosts is None:
            return None
        more = [column for metric in setup.metrics for column in metric.columns]
        schema = columns(setup.reference is not None, more)
        attributes = attributes_of(setup, output.command, hosts)
        if output.resume:
            every = setup.experiment.run.log_every
            return LogWriter.reopen(output.log, schema, first_round, every, attributes)
        log = LogWriter.create(output.log, attributes, schema, output.force)
        checkpoint.discard(checkpoint.path_for(output.log))
        return log
