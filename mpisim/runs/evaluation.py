"""The row of x^k (f and its gradient over all workers, and the cost until x^k was known), and how
a run ended.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from mpisim.comm.clock import PARALLEL, SlowestPath
from mpisim.comm.ledger import COLUMNS as BITS
from mpisim.comm.star import Star
from mpisim.core.arrays import EVALUATION, to_host
from mpisim.core.numerics.lanes import dot
from mpisim.core.numerics.sums import add_rows
from mpisim.methods.oracle import Oracle
from mpisim.runs.log.schema import REFERENCE
from mpisim.runs.metrics import Metric


@dataclasses.dataclass(frozen=True)
class Row:
    """One row of the log; only rank 0 knows the seconds.

    reference : `schema.REFERENCE`, where the minimiser is known; bits : the ledger's totals
    """

    round: int
    loss: float
    grad_norm_sq: float
    reference: tuple[float, ...]
    oracle_calls: int
    bits: tuple[int, ...]
    seconds: list[float]
    signal: int
    checkpoint: bool

    def values(self) -> dict[str, float]:
        """What all ranks know of the row, by column."""
        own = {"loss": self.loss, "grad_norm_sq": self.grad_norm_sq}
        names = [name for name, *_ in REFERENCE] if self.reference else []
        reference = dict(zip(names, self.reference, strict=True))
        bits = dict(zip(BITS, self.bits, strict=True))
        return own | reference | bits | {"oracle_calls": self.oracle_calls}


class Evaluator:
    """Evaluates rows by one message that passes all ranks in worker order, then back to all.

    After the gradient (d) it carries the loss, the oracle calls, a signal that a rank has received,
    rank 0's request for a checkpoint, the longest time that a rank was busy since the last row
    (without the gradients of that row's evaluation, which precede the common start), rank 0's bits,
    and the clock of the slowest rank. An ``explicit`` problem knows f, so gradient and loss are
    left out.
    """

    def __init__(self, star: Star, oracle: Oracle, metrics: Sequence[Metric] = ()):
        self.star, self.oracle, self.clock, self.metrics = star, oracle, star.clock, metrics
        self.path = SlowestPath()
        self.calls = 0
        self.start = float("nan")  # |grad f(x^0)|^2
        self._busy = [0.0] * (len(PARALLEL) + 2)

    def row(
        self,
        k: int,
        x: np.ndarray,
        signal: int,
        checkpoint: bool,
        reference: tuple[np.ndarray, float] | None = None,
    ) -> Row:
        """The row of x^k. Collective; only rank 0's ``checkpoint`` counts. Leaves EVALUATE on.

        reference : x* and f(x*), where they are known
        """
        star = self.star
        known = self.oracle.whole(x) if self.oracle.problem.explicit else None
        nothing = np.empty(0), np.empty((0, 0))
        losses, found = nothing if known is not None else self.oracle.evaluate(x)
        gradients = to_host(found, EVALUATION)
        d = gradients.shape[1]
        busy, own_busy = self._busy_since_last()
        wish = checkpoint and star.is_server
        charged = list(star.ledger.totals.values())

        def fold(total: np.ndarray) -> None:
            add_rows(total[:d], gradients)
            loss, calls, received, due, longest, *rest = total[d:].tolist()
            bits, slowest = rest[: len(BITS)], rest[len(BITS) :]
            for own in losses.tolist():
                loss += own
            slowest = busy if sum(busy) > sum(slowest) else slowest
            bits = charged if star.is_server else bits
            requests = received or signal, due or wish
            counts = loss, calls + self.oracle.calls, *requests, max(longest, own_busy)
            total[d:] = *counts, *bits, *slowest

        total = np.zeros(d + 5 + len(BITS) + len(PARALLEL))
        star.relay(total, fold)
        loss, calls, received, due, longest, *rest = total[d:].tolist()
        bits, slowest = rest[: len(BITS)], rest[len(BITS) :]
        f, grad = known or (loss / star.n, total[:d] / star.n)
        self.calls = int(calls)
        if star.is_server:
            self.path.add(self.clock.seconds, slowest, longest - own_busy)
        exact = charged if star.is_server else map(int, bits)  # floats end at 2^53
        norm_sq = float(dot(grad, grad))
        self.start = norm_sq if k == 0 else self.start
        return Row(
            k,
            f,
            norm_sq,
            _away(x, f, reference),
            self.calls,
            tuple(exact),
            list(self.path.seconds),
            int(received),
            bool(due),
        )

    def metrics_at(self, x: np.ndarray) -> np.ndarray:
        """The values of all metrics at x."""
        return np.array([value for metric in self.metrics for value in metric.values(x)])

    def state(self) -> dict[str, Any]:
        """The costs until the last row, and |grad f(x^0)|^2, on rank 0."""
        return {"oracle_calls": self.calls, "seconds": self.path.seconds, "start": self.start}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what `state` returned."""
        self.start = float(state["start"])
        self.path.seconds = state["seconds"].tolist()
        self.oracle.restore(int(state["oracle_calls"]) if self.star.is_server else 0)

    def _busy_since_last(self) -> tuple[list[float], float]:
        """Seconds of this rank's `PARALLEL` phases since the last row, and how long others waited
        for it: without the gradients of that row's evaluation, but with compiling."""
        clock = self.clock
        now = [*(clock.seconds[phase] for phase in PARALLEL), self.oracle.credited, clock.delayed]
        steps = [after - before for after, before in zip(now, self._busy, strict=True)]
        self._busy, (*busy, credited, delayed) = now, steps
        return busy, sum(busy) - credited + delayed


def _away(x: np.ndarray, f: float, reference: tuple[np.ndarray, float] | None) -> tuple[float, ...]:
    """f(x) - f(x*) and |x - x*|^2; empty where x* is not known."""
    if reference is None:
        return ()
    x_star, f_star = reference
    away = to_host(x, EVALUATION) - x_star
    return f - f_star, float(dot(away, away))


@dataclasses.dataclass(frozen=True)
class End:
    """How a run ended: the status, the last row, and its x^k, shape (d,).

    before : the log was complete, and nothing ran
    stopped_by : "rounds", or the condition of ``run.stop`` that the last row met; empty unless the
        run is done

    Rank 0 has the log's attributes and, with ``Output.keep``, its columns; other ranks have none.
    """

    status: str
    row: Row
    x: np.ndarray
    stopped_by: str = ""
    columns: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    attributes: dict[str, Any] = dataclasses.field(default_factory=dict)
    before: bool = False
