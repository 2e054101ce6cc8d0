"""The row of x^k: f and its gradient over all workers, and what was spent until x^k was known."""

from __future__ import annotations

import dataclasses

import numpy as np

from mpisim.clock import COMPRESS, COMPUTE, ENCODE, OTHER, Clock, SlowestPath
from mpisim.kernels import add_rows
from mpisim.oracle import Oracle
from mpisim.star import Star

SIDE_BY_SIDE = (COMPUTE, COMPRESS, ENCODE)


@dataclasses.dataclass(frozen=True)
class Row:
    """One row of the log; bits and seconds are rank 0's knowledge, the rest everybody's."""

    round: int
    loss: float
    grad_norm_sq: float
    oracle_calls: int
    bits: tuple[int, ...]
    seconds: list[float]
    signal: int
    checkpoint: bool


class Evaluator:
    """Evaluates rows: one message that passes all ranks in worker order, and back to everyone.

    Behind the gradient (d) it carries the loss, the oracle calls, a signal that some rank has
    received, rank 0's wish for a checkpoint, and the clock of the slowest rank.
    """

    def __init__(self, star: Star, oracle: Oracle, clock: Clock):
        self.star, self.oracle, self.clock = star, oracle, clock
        self.path = SlowestPath()
        self.calls = 0
        self._busy = [0.0] * len(SIDE_BY_SIDE)

    def row(self, k: int, x: np.ndarray, signal: int, checkpoint: bool) -> Row:
        """The row of x^k. Collective; ``checkpoint`` counts on rank 0 alone."""
        star, d = self.star, x.size
        losses, gradients = self.oracle.evaluate(x)
        busy = [self.clock.seconds[p] - b for p, b in zip(SIDE_BY_SIDE, self._busy, strict=True)]
        self._busy = [self.clock.seconds[p] for p in SIDE_BY_SIDE]
        wish = checkpoint and star.is_server

        def fold(total: np.ndarray) -> None:
            add_rows(total[:d], gradients)
            loss, calls, received, due, *slowest = total[d:].tolist()
            for own in losses.tolist():
                loss += own
            if sum(busy) > sum(slowest):
                slowest = busy
            total[d:] = (loss, calls + self.oracle.calls, received or signal, due or wish, *slowest)

        total = np.zeros(d + 4 + len(SIDE_BY_SIDE))
        star.relay(total, fold)
        grad = total[:d] / star.n
        loss, calls, received, due, *slowest = total[d:].tolist()
        self.calls = int(calls)
        if star.is_server:
            self.path.add(self.clock.seconds, slowest)
        self.clock.to(OTHER)
        bits, seconds = tuple(star.ledger.totals.values()), list(self.path.seconds)
        return Row(k, loss / star.n, float(grad @ grad), self.calls, bits, seconds, int(received), bool(due))
