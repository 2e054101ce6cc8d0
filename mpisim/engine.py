"""run(experiment): the loop over rounds, stop rules, progress, logging, checkpoints."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from mpi4py import MPI

from mpisim import checkpoint
from mpisim.clock import EVALUATE, OPTIMIZER, OTHER, Clock
from mpisim.config import Experiment
from mpisim.errors import Diverged, InputError
from mpisim.evaluation import Evaluator, Row
from mpisim.loaded import Loaded
from mpisim.logs import LogWriter, columns
from mpisim.measures import measures_of
from mpisim.oracle import Gradients, Oracle
from mpisim.progress import Progress
from mpisim.signals import StopSignals
from mpisim.star import Star
from mpisim.streams import Streams
from mpisim.sysinfo import provenance
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
        self.identity = checkpoint.identity(experiment.table, self.problem.identity, n)

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
        setting = setting_of(c, self.problem, self.compressor, method.condition())
        step = self.estimator.theory_step(setting)
        source = step.source if multiple == 1 else f"{multiple:g} x {step.source}"
        return Step(multiple * step.gamma, source)

    def run(self, output: Output, signals: StopSignals) -> Result:
        """The loop, between opening and closing what it writes."""
        k, x = 0, self.problem.initial_point()
        if output.resume and output.log is not None:
            k, x = self._restore(checkpoint.path_for(output.log))
        self.log = self._open_log(output, k)
        self.checkpoint_path = checkpoint.path_for(output.log) if output.log is not None else None
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
        saved = monotonic()
        for k in range(first, settings.rounds + 1):
            star.round = k
            if settings.logs(k):
                due = monotonic() - saved > settings.checkpoint_seconds
                row = self.evaluator.row(k, x, signals.received, due)
                self._measure(k, x)
                self._write(row, x)
                status = self._status(row, signals)
                if status or row.checkpoint:
                    self._save(k, x)
                    saved = monotonic()
                if status:
                    return Result(status, row, x)
            g = self.estimator.start(x) if k == 0 else self.estimator.estimate(x)
            self.clock.to(OPTIMIZER)
            x = self.optimizer.step(x, g)
            self.clock.to(OTHER)
            if star.is_server:
                star.ledger.end_round()
        raise AssertionError("the last round is evaluated and returns")

    def _measure(self, k: int, x: np.ndarray) -> None:
        """The values of further columns; a resumed run has those of its first row already."""
        if self.measured is None or k > self.resumed:
            self.clock.to(EVALUATE)
            values = [value for measure in self.star.measures for value in measure.values(x)]
            self.measured = np.array(values)
            self.clock.to(OTHER)

    def _status(self, row: Row, signals: StopSignals) -> str:
        """Why the run ends with this row, alike on all ranks; empty when it goes on."""
        if not np.isfinite(row.loss):
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
        if output.resume:
            return LogWriter.reopen(output.log, schema, first_round)
        return LogWriter.create(
            output.log, self._attributes(output.command, hosts), schema, output.force
        )

    def _attributes(self, command: str, hosts: list[str]) -> dict[str, Any]:
        experiment, star = self.experiment, self.star
        parameters = {
            f"method_{name}": value for name, value in self.estimator.parameters().items()
        }
        return (
            provenance()
            | parameters
            | {
                "title": experiment.title,
                "command": command,
                "config": experiment.to_toml(),
                "method": experiment.method.name,
                "compressor": experiment.compressor.name,
                "problem": self.problem.identity,
                "seed": experiment.run.seed,
                "ranks": star.ranks,
                "workers": star.n,
                "dimension": self.problem.d,
                "stepsize": self.step.gamma,
                "stepsize_source": self.step.source,
                "mpi_library": MPI.Get_library_version().splitlines()[0].strip("\x00"),
                "hosts": ", ".join(sorted(set(hosts))),
            }
        )

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
        if self.checkpoint_path is None:
            return
        held = {
            name: getattr(self.estimator, name) for name in self.estimator.worker_state if k > 0
        }
        points = {name: rows.x for name, rows in held.items() if isinstance(rows, Gradients)}
        worker: dict[str, Any] = {
            name: self.star.gather_workers(rows)
            for name, rows in held.items()
            if name not in points
        }
        calls = self.evaluator.calls
        if self.star.is_server:
            assert self.log is not None
            self.log.flush()
            server = {
                name: getattr(self.estimator, name) for name in self.estimator.server_state if k > 0
            }
            state = {
                "round": k,
                "x": x,
                "oracle_calls": calls,
                "measured": self.measured,
                "seconds": self.evaluator.path.seconds,
            }
            state |= checkpoint.flatten("worker", worker) | checkpoint.flatten("server", server)
            state |= checkpoint.flatten("points", points)
            state |= checkpoint.flatten("optimizer", self.optimizer.state)
            state |= checkpoint.flatten("ledger", self.star.ledger.state())
            checkpoint.save(self.checkpoint_path, self.identity, state)

    def _restore(self, path: Path) -> tuple[int, np.ndarray]:
        """The round to go on with and its x, all state put back on this rank."""
        state, star = checkpoint.load(path, self.identity), self.star
        mine = slice(star.first, star.first + star.m)
        for name, rows in checkpoint.pick("worker", state).items():
            setattr(self.estimator, name, rows[mine])
        for name, point in checkpoint.pick("points", state).items():
            setattr(self.estimator, name, Gradients(self.problem, point))
        for name, value in checkpoint.pick("server", state).items():
            setattr(self.estimator, name, value)
        self.optimizer.state = checkpoint.pick("optimizer", state)
        star.ledger.restore(checkpoint.pick("ledger", state))
        self.clock.restart()  # this start's set-up exchange repeats the one that was charged
        self.evaluator.path.seconds = state["seconds"].tolist()
        self.oracle.calls = int(state["oracle_calls"]) if star.is_server else 0
        self.measured, self.resumed = state["measured"], int(state["round"])
        return self.resumed, state["x"]
