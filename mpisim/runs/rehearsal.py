"""Rehearse an experiment, so that its clocks start warm.

The first time that a kernel, a module or a block of memory is used takes longer than any later
time. None of that is a method's work.
"""

from __future__ import annotations

import statistics
from time import perf_counter
from typing import NamedTuple

import numpy as np

from mpisim.comm.clock import COMPILE, Clock
from mpisim.comm.compilation import uncharged
from mpisim.comm.star import Star
from mpisim.core.round import Round
from mpisim.methods.oracle import Oracle
from mpisim.runs.evaluation import Evaluator
from mpisim.runs.iteration import Iteration
from mpisim.runs.metrics import metrics_of
from mpisim.runs.setup import Setup

FIRST = 5  # rounds: the start, and twice each side of a coin
LONG = 10.0  # seconds; a row that takes longer is evaluated once, as a second one tells nothing new


class RehearsalStar(Star):
    """A star whose coins show one side in even rounds and the other side in odd ones.

    shown : the side of the last coin, and its probability; (True, 1) without a coin so far
    """

    shown = True, 1.0

    def coin(self, p: float) -> bool:
        side = (super().coin(p) and p == 1) or self.round % 2 == 1
        self.shown = side, p if side else 1 - p
        return side


class Rehearsal(NamedTuple):
    """What a rehearsal found.

    shapes : of the state behind the first round
    round_seconds : this rank's of a round, the mean over its coin
    row_seconds : rank 0's of a row of the log
    """

    shapes: dict[str, tuple[int, ...]]
    round_seconds: float
    row_seconds: float

    def seconds(self, rounds: int, every: int) -> float:
        """How long so many rounds take, with a row each ``every`` rounds and at the end."""
        return rounds * self.round_seconds + (rounds // every + 1) * self.row_seconds


def rehearse(setup: Setup) -> Rehearsal:
    """Run some rounds of the experiment on parts of their own. Collective.

    Their bits and seconds are charged to nobody, and their state is thrown away. The rounds are the
    first ones and the last one, which may be of another kind (after a warm-up, say).
    """
    stage, iteration, evaluator = _parts(setup)
    rounds, x = setup.experiment.run.rounds, setup.problem.initial_point()
    setup.problem.attach_round(iteration.round)
    shapes: dict[str, tuple[int, ...]] = {}
    times: list[tuple[tuple[bool, float], float]] = []  # what the coin showed, seconds
    row, clock = 0.0, evaluator.clock
    # a step may be too long
    with np.errstate(over="ignore", invalid="ignore"), uncharged(clock):
        for k in range(rounds) if rounds <= FIRST else (*range(FIRST), rounds - 1):
            iteration.round.k = k
            if k == 0 or (k == rounds - 1 and row < LONG):
                begin = _warm(clock)
                evaluator.row(k, x, 0, False)
                evaluator.metrics_at(k, x)
                row = evaluator.star.comm.bcast(_warm(clock) - begin)  # all decide alike
            start = perf_counter()
            for metric in evaluator.metrics:
                metric.passed(x)
            x = iteration.next(k, x)
            times.append((stage.shown, perf_counter() - start))
            shapes = shapes or iteration.shapes()
    setup.problem.attach_round(setup.round)
    return Rehearsal(shapes, _mean(times[1:] or times), row)  # the first one warms up


def _mean(times: list[tuple[tuple[bool, float], float]]) -> float:
    """The mean over the sides of the coin, each with its usual time; 0 without any round."""
    by_side: dict[tuple[bool, float], list[float]] = {}
    for shown, seconds in times:
        by_side.setdefault(shown, []).append(seconds)
    usual = sum(p * statistics.median_low(own) for (_, p), own in by_side.items())
    return usual / (sum(p for _, p in by_side) or 1)


def _warm(clock: Clock) -> float:
    """The time, without that of kernels compiled or loaded so far."""
    return perf_counter() - clock.seconds[COMPILE]


def _parts(setup: Setup) -> tuple[RehearsalStar, Iteration, Evaluator]:
    """Parts like those of the run, with their own clock, ledger and state."""
    star, settings, method = setup.star, setup.run, setup.experiment.method
    clock, round = Clock(), Round(settings.rounds)
    parts = star.n, settings.layout, star.streams, star.precision, clock, round
    stage = RehearsalStar(star.comm, *parts)
    stage.arrays = star.arrays
    oracle = Oracle(setup.problem, clock, setup.oracle.samples)
    estimator = method.estimator.bind(stage, oracle, setup.compressor)
    optimizer = method.optimizer.bind(settings.rounds)
    metrics = metrics_of(stage, setup.problem, optimizer, settings.columns or (), settings.logs)
    iteration = Iteration(stage, round, estimator, optimizer, method, setup.step.gamma)
    return stage, iteration, Evaluator(stage, oracle, clock, metrics)
