"""Rehearse an experiment, so that its clocks start warm.

The first time that a kernel, a module or a block of memory is used takes longer than any later
time. None of that is a method's work.
"""

from __future__ import annotations

import statistics
from math import ceil, inf
from time import perf_counter
from typing import NamedTuple

import numpy as np

from mpisim.comm.clock import COMMUNICATE, COMPILE, PARALLEL, PHASES, Clock, uncharged
from mpisim.comm.network import Upload
from mpisim.comm.star import Star
from mpisim.core.errors import InputError
from mpisim.runs import careful
from mpisim.runs.labels import by_key
from mpisim.runs.setup import Setup
from mpisim.wire.base import Message

FIRST = 5  # rounds: the start, and twice each side of a coin
CLEARLY = 1.25  # times faster on one rank: less may be noise
LONG = 10.0  # seconds; a row that takes longer is evaluated once, as a second one tells nothing new


class RehearsalStar(Star):
    """A star whose coins show one side in even rounds and the other side in odd ones.

    It refuses what is no upload.

    shown : the side of the last coin, and its probability; (True, 1) without a coin so far
    """

    shown = True, 1.0

    def gather(self, upload: Upload) -> Message | None:
        if not isinstance(upload, Upload):
            allowed = "what compress has returned; star.mean takes lazy vectors, too"
            raise InputError(f"star: {type(upload).__name__} cannot be sent; allowed: {allowed}")
        return super().gather(upload)

    def coin(self, p: float) -> bool:
        side = (super().coin(p) and p == 1) or self.round % 2 == 1
        self.shown = side, p if side else 1 - p
        return side

    def flips(self, p: float) -> int:
        super().coin(p)
        return ceil(1 / p)


class Rehearsal(NamedTuple):
    """What a rehearsal found.

    shapes : of the state after the first round
    round_seconds : this rank's of a round, the mean over its coin
    alone_seconds : about what a round takes on one rank: what all ranks work, without exchanges
    """

    shapes: dict[str, tuple[int, ...] | None]
    round_seconds: float
    alone_seconds: float = inf

    def advice(self, ranks: int) -> str:
        """A line where one rank is `CLEARLY` faster than the job's ``ranks``; else empty."""
        if ranks == 1 or self.alone_seconds * CLEARLY > self.round_seconds:
            return ""
        both = self.round_seconds, self.alone_seconds
        here, alone = (f"{float(f'{1e3 * seconds:.2g}'):g} ms" for seconds in both)
        return f"without mpirun it is faster: about {alone} a round, {here} on {ranks} ranks"


def rehearse(setup: Setup) -> Rehearsal:
    """Run some rounds of the experiment on a state and a star of their own. Collective.

    Their bits and seconds are charged to nobody, and their state is thrown away. The rounds are the
    first ones and the last one, which may be of another kind (after a warm-up, say).
    """
    star, rounds, clock, next_round = setup.star, setup.run.rounds, Clock(), setup.round.k
    parts = star.streams, star.precision, clock, setup.round, star.arrays
    rules = star.server, star.attack, star.fleet
    stage = RehearsalStar(star.comm, star.n, setup.run.layout, *parts, *rules)
    state = setup.new_state(stage)
    shapes: dict[str, tuple[int, ...] | None] = {}
    times: list[tuple[tuple[bool, float], float]] = []  # what the coin showed, seconds
    worked: list[list[float]] = []  # seconds of each phase
    row = 0.0  # seconds of a row of the log
    # a step may be too long
    with np.errstate(over="ignore", invalid="ignore"), uncharged(clock):
        if careful.is_plugin(setup.problem):
            careful.require_gradients(setup.problem, state.x)
        for k in range(rounds) if rounds <= FIRST else (*range(FIRST), rounds - 1):
            state.jump(k)
            if k == 0 or (k == rounds - 1 and row < LONG):
                begin = _warm(clock)
                x = state.evaluated()
                state.evaluator.row(k, x, 0, False)
                state.metrics_at(x)
                row = star.comm.bcast(_warm(clock) - begin)  # all decide alike
            start, before = perf_counter(), list(clock.seconds)
            state.step(setup.step.gamma)
            times.append((stage.shown, perf_counter() - start))
            worked.append([b - a for a, b in zip(before, clock.seconds, strict=True)])
            held = state.shapes()  # in each round, as it refuses what no checkpoint can hold
            shapes = held if k == 0 else shapes
    state.require_alike()
    state.jump(next_round)
    shown = [side for side, _ in times]
    alone = _alone(setup.star.comm.gather(worked))
    later = list(zip(shown, alone, strict=True))[1:] if alone else []  # the first one warms up
    return Rehearsal(shapes, _mean(times[1:] or times), _mean(later) if later else inf)


def _alone(ranks: list[list[list[float]]] | None) -> list[float]:
    """Seconds of each round on one rank, from those of each rank, round and phase; on rank 0.

    The ranks' parallel phases follow one another, and rank 0 communicates with nobody.
    """
    if not ranks:
        return []
    serial = [phase for phase in range(len(PHASES)) if phase not in (*PARALLEL, COMMUNICATE)]
    together = [sum(rank[phase] for phase in serial) for rank in ranks[0]]
    return [
        seconds + sum(rank[k][phase] for rank in ranks for phase in PARALLEL)
        for k, seconds in enumerate(together)
    ]


def _mean(times: list[tuple[tuple[bool, float], float]]) -> float:
    """The mean over the sides of the coin, each with its usual time; 0 without any round."""
    by_side = by_key(times, lambda one: one[0])
    usual = sum(p * statistics.median_low(s for _, s in ones) for (_, p), ones in by_side.items())
    return usual / (sum(p for _, p in by_side) or 1)


def _warm(clock: Clock) -> float:
    """The time, without that of kernels compiled or loaded so far."""
    return perf_counter() - clock.seconds[COMPILE]
