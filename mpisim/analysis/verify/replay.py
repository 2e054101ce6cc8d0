"""Recomputes the bits of a run from its seed alone, without its data.

The method runs again on a problem whose gradients are zero. Shared randomness decides which rounds
are compressed, which workers take part and which coordinates travel, so if the length of a message
does not depend on its values, all columns of bits follow.
"""

from __future__ import annotations

import dataclasses
from time import monotonic

import numpy as np

from mpisim.analysis.verify.checks import worker_difference
from mpisim.comm.clock import Clock
from mpisim.comm.communicators import OneProcess
from mpisim.comm.star import Star
from mpisim.core.errors import InputError
from mpisim.core.protocols import Round
from mpisim.core.rng import Streams
from mpisim.core.terminal import report
from mpisim.problems.base import Problem
from mpisim.runs.experiment import Experiment
from mpisim.runs.log.reader import Log
from mpisim.runs.log.schema import LEDGER, ORACLE
from mpisim.runs.run_state import RunState

COLUMNS = [name for name, *_ in LEDGER + ORACLE]
PROGRESS_SECONDS = 5.0


class ZeroGradients(Problem):
    """A problem whose gradients are zero; ``rows``: samples of each worker."""

    name = "zero-gradients"
    identical = True
    identity = "zero-gradients"

    def __init__(self, d: int, rows: np.ndarray, dtype: np.dtype):
        self.n = self.m = rows.size
        self.first, self.d, self.rows, self.dtype = 0, d, rows, dtype

    def load(self, n: int, first: int, count: int, seed: int, dtype: np.dtype) -> None:
        raise TypeError("there is nothing to load")

    def losses_and_gradients(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(self.m), np.zeros((self.m, self.d), self.dtype)

    def batch_gradients(self, x: np.ndarray, batch: np.ndarray) -> np.ndarray:
        return np.zeros((self.m, self.d), self.dtype)


def why_not(log: Log, experiment: Experiment) -> str:
    """Why the bits cannot be recomputed; empty if they can."""
    if "rows" not in log.workers:
        return "the run did not end, so its log lacks the number of samples of each worker"
    if log.columns["bits_up"][0] or log.columns["bits_down"][0]:
        return "what was exchanged before round 0 depends on the data"
    compressor = experiment.compressor
    star, _ = _star(log, experiment)
    bound = compressor.bind(int(log.attrs["dimension"]), log.n, experiment.run.precision)
    if bound.fitted:
        return f"the compressor {compressor.name!r} is fitted to the data"
    if bound.form(star.draw("up")).sizes is None:
        return f"the length of a message of {compressor.name!r} depends on what is in it"
    return ""


def replay(log: Log, experiment: Experiment) -> list[str]:
    """The first difference of each column of bits, and of ``oracle_calls``.

    Raises `InputError` where the method does not fit the log, which another version then wrote.
    """
    star, round = _star(log, experiment)
    rows = log.workers["rows"]
    problem = ZeroGradients(int(log.attrs["dimension"]), rows, star.precision.arithmetic)
    compressor = experiment.compressor.bind(problem.d, star.n, star.precision)
    unmeasured = dataclasses.replace(experiment.run, columns=None)
    experiment = dataclasses.replace(experiment, run=unmeasured)
    state = RunState(experiment, star, round, problem, compressor, rows)
    found, shown = [], monotonic()
    rounds = log.columns["round"].tolist()
    wanted = set(rounds)
    for k in range(rounds[-1] + 1):
        if k in wanted:
            found.append((*star.ledger.totals.values(), state.oracle.calls))
        if k < rounds[-1]:
            state.step(0.0)
        if monotonic() - shown > PROGRESS_SECONDS:
            shown = monotonic()
            report(f"  bits of round {k} of {rounds[-1]}")
    problems = []
    for name, ours in zip(COLUMNS, np.array(found).T, strict=True):
        theirs = log.columns.get(name, ours)  # an older log lacks some
        if not np.array_equal(ours, theirs):
            row = int(np.argmax(ours != theirs))
            values = f"the log has {theirs[row]}, the seed gives {ours[row]}"
            problems.append(f"round {rounds[row]}, {name}: {values}")
    return [*problems, *worker_difference(log, star.ledger.worker_bits_up, "the seed gives")]


def _star(log: Log, experiment: Experiment) -> tuple[Star, Round]:
    run = experiment.run
    streams, round = Streams(run.seed), Round(run.rounds)
    star = Star(OneProcess(), log.n, "shared", streams, run.precision, Clock(), round)
    if log.n < 1 or int(log.attrs["dimension"]) < 1:
        raise InputError(f"{log.path}: has no workers or no dimension")
    return star, round
