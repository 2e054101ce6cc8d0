"""The loop over the rounds of an experiment."""

from __future__ import annotations

import dataclasses
from time import monotonic

import numpy as np

from mpisim.comm.clock import COMMUNICATE, OTHER, uncharged
from mpisim.comm.communicators import Comm, on_subset
from mpisim.comm.job import together
from mpisim.comm.star import Star
from mpisim.core.arrays import to_host
from mpisim.core.errors import Diverged, InputError
from mpisim.core.terminal import report
from mpisim.runs.attributes import Durations
from mpisim.runs.experiment import Experiment
from mpisim.runs.labels import ranks_of, too_few
from mpisim.runs.log.writer import locked
from mpisim.runs.metrics import End, Row
from mpisim.runs.record import Output, Record, find_start
from mpisim.runs.rehearsal import rehearse
from mpisim.runs.setup import Setup
from mpisim.runs.stop import STATUS, STOPPED, StopSignals, diverges

SECONDS = 0.5  # between two checks of clock and signals, approximately
FASTER = 2  # the number of rounds between two checks grows by at most this factor


def run(experiment: Experiment, output: Output, comm: Comm) -> End:
    """Run an experiment on its ranks of ``comm``; rank 0 writes log and checkpoints.

    Raises `InputError` if the experiment is not valid, and `Diverged`, with a complete log, if it
    diverges.
    """
    with StopSignals() as signals, locked(comm, output.log):
        end = run_on_its_ranks(experiment, comm, output, signals)
        if end.status in STOPPED and comm.rank == 0:
            report(signals.stopped(end.status, end.row["round"], output.log))
    if end.status == "diverged":
        row = end.row
        values = f"loss {row['loss']:.6g}, |grad f|^2 {row['grad_norm_sq']:.6g}"
        raise Diverged(f"diverged: {values} at round {row['round']}; log {output.log}")
    return end


def run_on_its_ranks(
    experiment: Experiment, comm: Comm, output: Output, signals: StopSignals
) -> End:
    """`set_up_and_run` on the ranks that the experiment asks for; `InputError` if there are fewer.

    Collective.
    """
    needed = ranks_of(experiment) or comm.size
    if needed > comm.size:
        raise InputError(too_few(needed, comm.size))
    return on_subset(comm, needed, lambda part: set_up_and_run(experiment, part, output, signals))


def set_up_and_run(experiment: Experiment, comm: Comm, output: Output, signals: StopSignals) -> End:
    """`run_rounds`, of an experiment that a signal ends at once while it is set up."""
    with signals.at_once():
        setup = Setup(experiment, comm)
    return run_rounds(setup, output, signals)


def run_rounds(setup: Setup, output: Output, signals: StopSignals) -> End:
    """Run an experiment that is set up, from its start or its checkpoint. Collective.

    The caller holds the lock of the log. A complete log that is resumed stays as it is.
    """
    durations = Durations(setup.clock, setup.state.evaluator.path)
    start = find_start(setup, output)
    if start.ended is not None:
        return dataclasses.replace(start.ended, before=True)
    if start.state:
        together(setup.star.side, lambda: setup.state.restore(start.state))
    record, end = Record(setup, output, start, durations), None
    try:
        rehearsal = rehearse(setup)
        if setup.round.k > 0:
            setup.state.require_shapes(rehearsal.shapes)
        record.rehearsed(rehearsal)
        # the status reports divergence
        with np.errstate(over="ignore", invalid="ignore"), uncharged(setup.clock):
            end = Loop(setup, record, signals).run()
    finally:
        record.close(end)
    return with_record(end, record)


def with_record(end: End, record: Record) -> End:
    """The end of a run with what rank 0 has of its closed record."""
    sha256 = record.log.sha256 if record.log else ""
    columns, attributes = record.columns(), record.attributes
    return dataclasses.replace(end, columns=columns, attributes=attributes, sha256=sha256)


class Loop:
    """Runs the rounds, evaluates the rows of the log between them, and decides when to stop."""

    def __init__(self, setup: Setup, record: Record, signals: StopSignals):
        self.setup, self.state, self.settings = setup, setup.state, setup.run
        self.record, self.signals = record, signals
        self.gamma, self.saved = setup.step.gamma, monotonic()

    def run(self) -> End:
        """Run the rounds from the state's on."""
        settings, first = self.settings, self.setup.round.k
        poll = Poll(self.state.star, first)
        try:
            for k in range(first, settings.rounds + 1):
                logged = settings.logs(k)
                if logged or (k >= poll.next and poll.wished(k, self.evaluation_due())):
                    end = self.evaluate(k, logged)
                    if end is not None:
                        return end
                    self.state.star.clock.to(OTHER)
                self.setup.round.look = poll.next
                self.state.step(self.gamma)
        finally:
            poll.finish()
        raise AssertionError("the last round is evaluated and returns")

    def evaluation_due(self) -> bool:
        """Whether this rank needs an evaluation before the next row of the log."""
        return self.signals.received > 0 or self._checkpoint_due()

    def _checkpoint_due(self) -> bool:
        return monotonic() - self.saved > self.settings.checkpoint_seconds

    def evaluate(self, k: int, logged: bool) -> End | None:
        """Evaluate x^k for the log, a checkpoint or the end, untimed; returns the end, if any.

        A checkpoint comes before the row, as metrics may count the rows that they measure.
        """
        x, evaluator, signal = self.state.evaluated(), self.state.evaluator, self.signals.received
        due, reference = self._checkpoint_due(), self.setup.reference
        row, signal, due = evaluator.row(k, x, signal, due, reference)
        status, stopped_by = self._status(row, logged, signal)
        if status or due:
            self.save()
        if logged or status:
            row |= self.state.metrics_at(x)
            self.record.row(row)
            self.signals.at(k, self.record.output.log)
        else:
            self.state.oracle.forget()  # the method must not depend on when a checkpoint is due
        if not status:
            return None
        x = to_host(x)
        return End(status, row, np.where(np.isnan(x), np.nan, x), stopped_by)

    def save(self) -> None:
        """Write a checkpoint of the state before the next round. Collective."""
        self.saved = monotonic()
        self.record.checkpoint()

    def _status(self, row: Row, logged: bool, signal: int) -> tuple[str, str]:
        """The status with which the run ends here, empty if it continues; and what stopped it.

        The same on all ranks.
        """
        loss, gradient = self.state.evaluator.start
        if logged and diverges(row, loss):
            return "diverged", ""
        if signal:
            return STATUS[signal], ""
        if not logged:
            return "", ""
        last = "rounds" if row["round"] == self.settings.rounds else ""
        stopped_by = self.settings.stop.met(row, self.setup.star.n, gradient) or last
        return "done" if stopped_by else "", stopped_by


class Poll:
    """A check twice a second, from round ``first`` on; ``next`` is the round of the next one.

    A check is a sum of two numbers over all ranks, which no rank waits for: it begins in one check
    and is read in the next. It carries rank 0's estimate of the rounds between two checks, so that
    all ranks know its round.
    """

    def __init__(self, star: Star, first: int):
        self.star, self.next = star, first + 1
        self._pace, self._k, self._since = 1, first, monotonic()
        # both must live until the sum is known
        self._numbers, self._total, self._request = np.zeros(2), np.zeros(2), None

    def wished(self, k: int, wish: bool) -> bool:
        """Whether some rank had a ``wish`` at the last check. Collective."""
        star = self.star
        star.clock.to(COMMUNICATE)
        wishes = self.finish()
        self._numbers[:] = wish, self._measured(k) if star.is_server else 0
        if star.ranks == 1:
            wishes, self._pace = wish, int(self._numbers[1])
        elif not wishes:
            self._request = star.side.Iallreduce(self._numbers, self._total)
        self.next = k + self._pace
        star.clock.to(OTHER)
        return wishes

    def finish(self) -> bool:
        """Whether some rank has a wish, by the check that has begun. Collective."""
        if self._request is None:
            return False
        self._request.Wait()
        self._request, self._pace = None, int(self._total[1])
        return bool(self._total[0] > 0)

    def _measured(self, k: int) -> int:
        """Rounds until the next check, by rank 0's clock since the last one."""
        now = monotonic()
        rounds, seconds = k - self._k, now - self._since
        self._k, self._since = k, now
        return max(1, min(FASTER * self._pace, int(rounds * SECONDS / max(seconds, 1e-9))))
