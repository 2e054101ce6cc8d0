"""Ensembles: runs that differ in step size or seed alone, and advance together.

Their coins are the same, or there are none. So a method's lines are executed once a round, on
arrays that have the rows of one run after those of another. Each run has its own log, ledger,
checkpoints and end, with the bits that they have when it runs alone; its seconds are its share. A
run that ends leaves the ensemble.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from mpisim.comm.byzantine import Server
from mpisim.comm.clock import EVALUATE, PHASES, Clock, uncharged
from mpisim.comm.ledger import Ledger
from mpisim.comm.network import LazyUpload, Upload
from mpisim.comm.star import Star
from mpisim.core.protocols import Round
from mpisim.core.rng import Draw, EnsembleDraw
from mpisim.methods.oracle import Oracle
from mpisim.problems.explicit import LazyGradients
from mpisim.runs.attributes import Durations
from mpisim.runs.experiment import Experiment
from mpisim.runs.loop import Loop, with_record
from mpisim.runs.metrics import End
from mpisim.runs.record import Output, Record
from mpisim.runs.rehearsal import rehearse
from mpisim.runs.resume import Start
from mpisim.runs.run_state import RunState
from mpisim.runs.setup import Setup
from mpisim.runs.stop import StopSignals


def key_of(experiment: Experiment) -> str:
    """Equal for experiments that can advance together; empty for one that has to run alone."""
    method, run, problem = experiment.method, experiment.run, experiment.problem
    parts = problem, method.estimator, method.optimizer, experiment.compressor
    able = all(vars(type(part)).get("in_ensembles") for part in parts)
    plain = experiment.server == Server() and experiment.attack is None and experiment.fleet is None
    looks = run.debug or run.columns or getattr(problem, "test_", None)  # beyond what it logs
    upward = getattr(method.estimator, "direction", "up") == "up"
    slower = problem.explicit and experiment.compressor.name == "topk"  # alone: few coordinates
    fit = able and plain and upward and run.ranks is None and run.dtype == "float64"
    if not fit or looks or slower:
        return ""
    table = experiment.table
    free: dict[str, dict[str, Any]] = {"method": {"stepsize": None}}
    if vars(type(method.estimator)).get("coinless") and not problem.seeded:
        free["run"] = {"seed": None}
    return repr(table | {name: table[name] | keys for name, keys in free.items()})


def run_together(
    setups: Sequence[Setup], outputs: Sequence[Output], signals: StopSignals
) -> list[End]:
    """Run experiments of one `key_of` from round 0 to their ends, on one rank.

    The caller holds the locks of their logs.
    """
    ensemble = Ensemble(setups, outputs, signals)
    everyone = ensemble.members
    try:
        rehearsal = rehearse(setups[0])
        for member in everyone:
            member.setup.clock.charge(())
            member.record.rehearsed(rehearsal)
        with np.errstate(over="ignore", invalid="ignore"), uncharged(ensemble.clock):
            ensemble.run()
    finally:
        with ExitStack() as stack:  # each is closed, also where that fails for one
            for member in (member for member in everyone if member.end is None):
                stack.callback(member.record.close, None)
    return [with_record(member.end, member.record) for member in everyone if member.end]


class EnsembleStar(Star):
    """Several ``stars`` on one rank, in one: a method's lines advance all their runs at once.

    Coins and samples are those of the first. So they may only be asked for if all have one seed.

    Arrays of workers have shape (runs n, d), those of the server and those that all know (runs, d).
    ``n`` is that of one run. Each run has a row of its own in the ledger.
    """

    def __init__(self, stars: Sequence[Star], clock: Clock, round: Round):
        one, by_seed = stars[0], {star.streams.seed: star.streams for star in stars}
        parts = one.streams, one.precision, clock, round, one.arrays
        super().__init__(one.comm, one.n, "shared", *parts)
        self.runs, self.m = len(stars), len(stars) * one.n
        self.ledger = Ledger(one.n, self.runs)
        self._streams = tuple(by_seed[star.streams.seed] for star in stars)

    def draw(self, purpose: str, clients: np.ndarray | None = None) -> Draw:
        if clients is not None:
            return super().draw(purpose, clients)
        number = next(self._numbers[purpose])
        where = self._round.k, 0, self.n, None, number
        return EnsembleDraw(self.streams, purpose, *where, self._streams)

    def mean(self, upload: Upload | LazyUpload) -> np.ndarray:
        if isinstance(upload, LazyUpload):
            return self._lazy_sums(upload) / self.n
        message = self.gather(upload)
        assert message is not None  # of the one rank
        return message.totals(self.runs) / self.n


class Given(Oracle):
    """The oracle of a member.

    given : its losses and gradients, which the ensemble has evaluated
    """

    given: Any

    def evaluate(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.clock.to(EVALUATE)
        return self.given


class Member(Loop):
    """A run of an ensemble; ``end``: None while it goes on."""

    end: End | None = None

    def __init__(self, ensemble: Ensemble, setup: Setup, output: Output):
        durations = Durations(setup.clock, setup.state.evaluator.path)
        super().__init__(setup, Record(setup, output, Start(), durations), ensemble.signals)
        self.ensemble = ensemble
        self.oracle = Given(setup.problem, setup.clock, setup.oracle.samples)
        self.state.oracle = self.state.evaluator.oracle = self.oracle

    def save(self) -> None:
        _give(self.ensemble.state, [self.ensemble.members.index(self)], self.state)
        super().save()


class Ensemble(Loop):
    """The loop of an ensemble, whose ``state`` has the arrays of all ``members`` that go on."""

    def __init__(self, setups: Sequence[Setup], outputs: Sequence[Output], signals: StopSignals):
        self.signals, self.setup, self.settings = signals, setups[0], setups[0].run
        self.clock, self.round = Clock(), Round(self.settings.rounds)
        self._shared_out = list(self.clock.seconds)
        pairs = zip(setups, outputs, strict=True)
        self.members = [Member(self, setup, output) for setup, output in pairs]
        self._bind(np.stack([member.state.x for member in self.members]))

    def _bind(self, x: np.ndarray) -> None:
        """A state of the members, with their x (runs, d), bits and oracle calls."""
        one, runs = self.members[0].setup, len(self.members)
        stars = [member.setup.star for member in self.members]
        star = EnsembleStar(stars, self.clock, self.round)
        parts = star, self.round, one.problem.repeated(runs), one.compressor, one.rows
        self.state = RunState(one.experiment, *parts)
        self.state.jump(self.round.k, x)
        self.gamma: Any = np.array([[member.gamma] for member in self.members])
        for run, member in enumerate(self.members):
            star.ledger.restore(member.setup.star.ledger.state(), run)
        self.state.oracle.restore(runs * self.members[0].oracle.calls)

    def evaluation_due(self) -> bool:
        return any(member.evaluation_due() for member in self.members)

    def evaluate(self, k: int, logged: bool) -> End | None:
        """The members' rows of x^k, checkpoints and ends; one of these when all have ended."""
        state, clock, runs, n = self.state, self.clock, len(self.members), self.state.star.n
        clock.to(EVALUATE)
        pairs = zip(clock.seconds[: len(PHASES)], self._shared_out, strict=False)
        shares = [(now - before) / runs for now, before in pairs]
        given = None if state.problem.explicit else state.oracle.evaluate(state.x)
        self._shared_out = list(clock.seconds)
        for run, member in enumerate(self.members):
            star, workers = member.setup.star, slice(run * n, (run + 1) * n)
            star.clock.charge(shares)
            star.ledger.restore(state.star.ledger.state(run))
            member.state.jump(k, state.x[run])
            member.oracle.restore(state.oracle.calls // runs)
            if given is not None:
                member.oracle.given = [rows[workers] for rows in given]
            member.end = member.evaluate(k, logged)
            if member.end is not None:
                member.record.close(member.end)
            star.clock.to(EVALUATE)
        stay = [run for run, member in enumerate(self.members) if member.end is None]
        if not stay:
            return self.members[-1].end
        if len(stay) < runs:
            self.members = [self.members[run] for run in stay]
            self._bind(state.x[stay])
            _give(state, stay, self.state)
        elif not logged:
            state.oracle.forget()
        return None


def _give(ensemble: RunState, runs: list[int], to: RunState) -> None:
    """Restore what an ensemble has of some runs, in the state of these or of one of them."""
    n, alone = ensemble.star.n, to.x.ndim == 1
    workers = (np.array(runs)[:, None] * n + np.arange(n)).ravel()

    def part(value: Any, place: str) -> Any:
        if isinstance(value, LazyGradients):
            return type(value)(to.problem, part(value.x, "Shared"))
        if not isinstance(value, np.ndarray):
            return value  # the same in all runs
        if place == "PerWorker":
            return value[workers]
        return value[runs[0]] if alone else value[runs]

    for title, its in to.parts.items():
        values, declared = ensemble.parts[title].state(), its.declared
        its.restore({name: part(value, declared[name].place) for name, value in values.items()})
