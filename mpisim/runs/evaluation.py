"""The row of x^k: f and its gradient over all workers, and what was spent until x^k was known."""

from __future__ import annotations

import dataclasses

import numpy as np

from mpisim.comm.clock import COMPRESS, COMPUTE, ENCODE, Clock, SlowestPath
from mpisim.comm.star import Star
from mpisim.core.ordered_sums import add_rows
from mpisim.methods.oracle import Oracle

SIDE_BY_SIDE = (COMPUTE, COMPRESS, ENCODE)
NOTHING = np.empty(0), np.empty((0, 0))


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
    received, rank 0's wish for a checkpoint, the longest time that a rank was busy after the last
    row (without the gradients of that row's evaluation, after which all ranks start alike), and
    the clock of the slowest rank. Where the problem knows f itself, gradient and loss are left out.
    """

    def __init__(self, star: Star, oracle: Oracle, clock: Clock):
        self.star, self.oracle, self.clock = star, oracle, clock
        self.path = SlowestPath()
        self.calls = 0
        self._busy = [0.0] * (len(SIDE_BY_SIDE) + 1)

    def row(self, k: int, x: np.ndarray, signal: int, checkpoint: bool) -> Row:
        """The row of x^k. Collective; ``checkpoint`` counts on rank 0 alone. Leaves EVALUATE on."""
        star = self.star
        known = self.oracle.whole(x) if self.oracle.problem.explicit else None
        if known is None:
            losses, gradients = self.oracle.evaluate(x)
        else:
            losses, gradients = NOTHING
        d = gradients.shape[1]
        busy, own_busy = self._busy_since_last()
        wish = checkpoint and star.is_server

        def fold(total: np.ndarray) -> None:
            add_rows(total[:d], gradients)
            loss, calls, received, due, longest, *slowest = total[d:].tolist()
            for own in losses.tolist():
                loss += own
            if sum(busy) > sum(slowest):
                slowest = busy
            calls += self.oracle.calls
            total[d:] = (
                loss,
                calls,
                received or signal,
                due or wish,
                max(longest, own_busy),
                *slowest,
            )

        total = np.zeros(d + 5 + len(SIDE_BY_SIDE))
        star.relay(total, fold)
        loss, calls, received, due, longest, *slowest = total[d:].tolist()
        f, grad = known or (loss / star.n, total[:d] / star.n)
        self.calls = int(calls)
        if star.is_server:
            self.path.add(self.clock.seconds, slowest, longest - own_busy)
        bits, seconds = tuple(star.ledger.totals.values()), list(self.path.seconds)
        return Row(
            k,
            f,
            float(grad @ grad),
            self.calls,
            bits,
            seconds,
            int(received),
            bool(due),
        )

    def _busy_since_last(self) -> tuple[list[float], float]:
        """This rank's compute, compress and encode since the last row; and their sum without the
        gradients of that row's evaluation."""
        now = [*(self.clock.seconds[p] for p in SIDE_BY_SIDE), self.oracle.credited]
        *busy, credited = (after - before for after, before in zip(now, self._busy, strict=True))
        self._busy = now
        return busy, sum(busy) - credited
