"""run(experiment): the loop over rounds, stop rules, progress, logging, checkpoints."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from time import monotonic

import numpy as np
from mpi4py import MPI

from mpisim.comm.clock import OPTIMIZER, OTHER, Clock
from mpisim.comm.consistency import require_alike
from mpisim.comm.job import on_first
from mpisim.comm.star import Star
from mpisim.core.errors import Diverged, InputError
from mpisim.core.rng import Streams
from mpisim.core.schema import flat, require
from mpisim.methods.oracle import Oracle
from mpisim.runs import checkpoint
from mpisim.runs.cache import Loaded
from mpisim.runs.evaluation import Evaluator, Row
from mpisim.runs.experiment import Experiment
from mpisim.runs.log.writer import LogWriter, columns
from mpisim.runs.metrics import measures_of
from mpisim.runs.poll import Lookout
from mpisim.runs.progress import Progress
from mpisim.runs.provenance import attributes_of
from mpisim.runs.signals import StopSignals
from mpisim.runs.snapshot import collect, put_back
from mpisim.theory.setting import Step, setting_of


@dataclasses.dataclass(frozen=True)
class Output:
    """Where a run writes: the log (None: nowhere), and what to do with one that is there."""

    log: Path | None
    force: bool = False
    resume: bool = False
    command: str = ""


@dataclasses.dataclass(frozen=True)
class Result:
    """How a run ended: the status, the last row, and its x^k, shape (d,)."""

    status: str
    row: Row
    x: np.ndarray


def run(experiment: Experiment, output: Output, comm: MPI.Intracomm) -> Result:
    """Run an experiment on all ranks of ``comm``; rank 0 writes log and checkpoints.

    Raises `InputError` for what does not fit together and `Diverged` when the loss is no longer
    finite; the log is complete in either case.
    """
    with StopSignals() as signals:
        result = Engine(experiment, comm).run(output, signals)
    if result.status == "diverged":
        raise Diverged(
            f"diverged: the loss is {result.row.loss} at round {result.row.round}; log {output.log}"
        )
    return result


class Engine:
    """One experiment, set up on this rank.

    Engines that are given the same ``loaded``, one after the other, load equal problems once.
    """

    def __init__(self, experiment: Experiment, comm: MPI.Intracomm, loaded: Loaded | None = None):
        self.experiment, settings = experiment, experiment.run
        self.clock = Clock()
        workers = getattr(experiment.problem, "workers", None)
        n = Star.worker_ranks(comm.size, settings.layout) if workers is None else workers
        self.star = Star(
            comm, n, settings.layout, Streams(settings.seed), settings.precision, self.clock
        )
        self.star.rounds = settings.rounds
        self.loaded = loaded or Loaded()
        self.problem = self.loaded.problem(experiment, self.star)
        # before the first exchange whose size depends on it
        require_alike(self.star.side, flat(experiment.table) | {"data": self.problem.identity})
        self.rows = self.star.all_workers(self.problem.rows)
        self.oracle = Oracle(self.problem, self.clock, int(self.rows.min()))
        self.compressor = experiment.compressor.bind(self.problem.d, n, settings.precision)
        self.compressor.prepare(self.star, self.problem)
        self.star.ledger.end_round()  # the set-up exchange is a round of its own, before round 0
        self.estimator = experiment.method.estimator.bind(self.star, self.oracle, self.compressor)
        self.step = self._step_size()
        self.optimizer = experiment.method.optimizer.bind(self.step.gamma, settings.rounds)
        self.reference = self.loaded.minimiser(self.star) if settings.reference else None
        self.evaluator = Evaluator(self.star, self.oracle, self.clock)
        self.star.measures = measures_of(self.star, self.problem, settings)
        self.measured: np.ndarray | None = None  # of the last row
        self.resumed = 0  # the first round of this run
        self.identity = checkpoint.identity(
            experiment.table,
            self.estimator.parameters()
            | {"schedule.at": experiment.method.schedule.starts(settings.rounds)},
            self.step.gamma,
            self.problem.identity,
            n,
        )

    def _step_size(self) -> Step:
        method = self.experiment.method
        multiple = method.multiple()
        if multiple is None:
            return Step(float(method.stepsize), "given")  # type: ignore[arg-type]
        if not method.optimizer.theorem:
            name = method.optimizer.name
            raise InputError(
                f"method.stepsize: there is no theorem for {name!r};"
                ' give a number instead of "theory"'
            )
        c = self.loaded.constants(self.star, method.smoothness)
        setting = setting_of(
            c, self.problem, self.compressor, self.star, method.smoothness, method.condition()
        )
        step = self.estimator.theory_step(setting)
        source = step.source if multiple == 1 else f"{multiple:g} x {step.source}"
        return Step(multiple * step.gamma, source)

    def run(self, output: Output, signals: StopSignals) -> Result:
        """The loop, between opening and closing what it writes."""
        k, x = 0, self.problem.initial_point()
        self.checkpoint_path = checkpoint.path_for(output.log) if output.log is not None else None
        if output.resume and self.checkpoint_path is not None:
            k, x = self._restore(self.checkpoint_path)
        self.log = self._open_log(output, k)
        self.progress = Progress(self.experiment.run.rounds) if self.star.is_server else None
        result = None
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # the status tells of divergence
                result = self._loop(k, x, signals)
        finally:
            self._close(result)
        return result

    def _loop(self, first: int, x: np.ndarray, signals: StopSignals) -> Result:
        settings, star = self.experiment.run, self.star
        self.saved, lookout = monotonic(), Lookout(star, first)
        for k in range(first, settings.rounds + 1):
            star.round = self.problem.round = k
            logged = settings.logs(k)
            if logged or (k >= lookout.next and lookout.wished(k, self._wish(signals))):
                result = self._stop_over(k, x, logged, signals)
                if result is not None:
                    return result
                self.clock.to(OTHER)
            for measure in star.measures:
                measure.passed(x)
            g = self.estimator.start(x) if k == 0 else self.estimator.estimate(x)
            self.clock.to(OPTIMIZER)
            x = self._next(k, x, g)
            self.clock.to(OTHER)
            if star.is_server:
                star.ledger.end_round()
        raise AssertionError("the last round is evaluated and returns")

    def _next(self, k: int, x: np.ndarray, g: np.ndarray) -> np.ndarray:
        """x^{k+1}, by the schedule's step size and with weight decay."""
        method = self.experiment.method
        multiple = method.schedule.multiple(k, self.experiment.run.rounds)
        self.optimizer.gamma = self.step.gamma * multiple
        return self.optimizer.step(x, g + method.weight_decay * x if method.weight_decay else g)

    def _wish(self, signals: StopSignals) -> bool:
        """Whether this rank has a reason to stop over before the next row."""
        return signals.received > 0 or self._due()

    def _due(self) -> bool:
        """Whether it is time for a checkpoint, by rank 0's clock."""
        late = monotonic() - self.saved > self.experiment.run.checkpoint_seconds
        return self.star.is_server and self.checkpoint_path is not None and late

    def _stop_over(
        self, k: int, x: np.ndarray, logged: bool, signals: StopSignals
    ) -> Result | None:
        """Evaluate x^k for the log, a checkpoint or the end; the result where the run ends.

        All of it is evaluation, whose seconds are left out.
        """
        row = self.evaluator.row(k, x, signals.received, self._due())
        status = self._status(row, logged, signals)
        if logged or status:
            self._measure(k, x)
            self._write(row, x)
        else:
            self.measured = None
            self.oracle.forget()  # what the method computes must not depend on the time of day
        if status or row.checkpoint:
            self._save(k, x)
        return Result(status, row, x) if status else None

    def _measure(self, k: int, x: np.ndarray) -> None:
        """The values of further columns; a resumed run has those of its first row already."""
        if self.measured is None or k > self.resumed:
            values = [value for measure in self.star.measures for value in measure.values(x)]
            self.measured = np.array(values)

    def _status(self, row: Row, logged: bool, signals: StopSignals) -> str:
        """Why the run ends with this row, alike on all ranks; empty when it goes on."""
        if logged and not np.isfinite(row.loss):
            return "diverged"
        if row.signal:
            return signals.status(row.signal)
        return "done" if row.round == self.experiment.run.rounds else ""

    def _write(self, row: Row, x: np.ndarray) -> None:
        if self.log is not None:
            assert self.measured is not None
            reference: tuple[float, ...] = ()
            if self.reference is not None:
                x_star, f_star = self.reference
                reference = (row.loss - f_star, float((x - x_star) @ (x - x_star)))
            self.log.row(
                (
                    row.round,
                    row.loss,
                    row.grad_norm_sq,
                    *reference,
                    *row.bits,
                    row.oracle_calls,
                    *row.seconds,
                    *self.measured.tolist(),
                )
            )
        if self.progress is not None:
            self.progress.update(row.round, row.loss, row.grad_norm_sq, row.bits[0] / self.star.n)

    def _open_log(self, output: Output, first_round: int) -> LogWriter | None:
        hosts = self.star.comm.gather(MPI.Get_processor_name())
        if output.log is None or hosts is None:
            return None
        schema = columns(self.reference is not None, self.star.measures)
        attributes = attributes_of(self, output.command, hosts)
        if output.resume:
            every = self.experiment.run.log_every
            return LogWriter.reopen(output.log, schema, first_round, every, attributes)
        log = LogWriter.create(output.log, attributes, schema, output.force)
        checkpoint.discard(checkpoint.path_for(output.log))
        return log

    def _close(self, result: Result | None) -> None:
        status = result.status if result else "failed"
        if self.progress is not None:
            self.progress.close(status)
        if self.log is not None:
            workers = {
                "rows": (self.rows, "1", "samples of the worker"),
                "bits_up": (
                    self.star.ledger.worker_bits_up,
                    "bit",
                    "payload bits sent by the worker",
                ),
            }
            self.log.finish(status, result.x if result else None, workers)

    def _save(self, k: int, x: np.ndarray) -> None:
        """A checkpoint of x^k and all state, before round k. Collective."""
        self.saved = monotonic()
        if self.checkpoint_path is None:
            return
        state = collect(self, k, x)
        if state is not None:
            assert self.log is not None
            self.log.flush()
            checkpoint.save(self.checkpoint_path, self.identity, state)

    def _restore(self, path: Path) -> tuple[int, np.ndarray]:
        """The round to go on with and its x, all state put back on this rank."""
        last = self.experiment.run.rounds
        content, note = on_first(self.star.side, lambda: checkpoint.load(path, self.identity))
        if note and self.star.is_server:
            print(f"mpisim: {note}", file=sys.stderr, flush=True)
        k, x = put_back(self, checkpoint.state_of(content))
        self.resumed = k
        require(k <= last, "run.rounds", last, f"at least {k}, the round of {path}")
        return k, x
