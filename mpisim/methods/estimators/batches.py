"""Minibatches, for variance-reduced methods and stochastic gradients; the clients of a round.

On a ``[fleet]`` clients take seconds, and some drop out of a round or come too late.
"""

from __future__ import annotations

import dataclasses
from math import inf
from typing import Literal, NamedTuple

import numpy as np

from mpisim.comm.fleet import Fleet
from mpisim.comm.links import on_wire
from mpisim.core.errors import InputError
from mpisim.core.schema import require, share_of
from mpisim.core.state import Shared
from mpisim.methods.estimators.base import EVERYONE, Clients, Estimator, unbiased
from mpisim.problems.explicit import LazyGradients
from mpisim.theory.setting import Setting, Step
from mpisim.wire.values import DenseForm

First = int | float | Literal["published"] | None


def batch_size(value: int | float, samples: int, key: str) -> int:
    """b' from a ``[method]`` key: a number of samples, or a share of a worker's, rounded up.

    ``samples``: m, the least number of any worker. `InputError` unless 1 <= b' <= m.
    """
    b = -share_of(-value, samples) if isinstance(value, float) and 0 < value < 1 else value
    allowed = f"an integer from 1 to m = {samples}, or a share of m between 0 and 1"
    require(isinstance(b, int) and 1 <= b <= samples, f"method.{key}", value, allowed)
    return int(b)


class Minibatches(Estimator):
    """What methods share that may have the keys ``batch``, ``big_batch`` and ``first_batch``."""

    def batch_size(self, key: str) -> int:
        """The samples behind a key of this method."""
        return batch_size(getattr(self, key), self.oracle.samples, key)

    def batch_sizes(self) -> dict[str, int]:
        given = (k for k in ("batch", "big_batch") if getattr(self, k, None) is not None)
        return {key: self.batch_size(key) for key in given}

    def first_batch_size(self, value: First, b: int, big: int, factor: float = 1) -> int:
        """Samples of the first gradients, from the key ``first_batch``: ``big`` unless given.

        "published" is max(``big``, ``factor`` omega b), from the published code of DASHA,
        `config_libsvm_zero_marina.py`. It counts gradients of b samples, and omega is RandK's
        there.
        """
        if isinstance(value, str):
            omega = unbiased(self.compressor, self.compressor.omega, "first_batch", value)
            return max(big, b * int(factor * omega))
        return big if value is None else batch_size(value, self.oracle.samples, "first_batch")

    def sampled_gradients(self, x: np.ndarray, size: int) -> np.ndarray:
        """Means over ``size`` samples that each worker draws with replacement, shape (m, d)."""
        batch = self.star.draw("big batch").samples(self.oracle.rows, size)
        return self.oracle.batch_gradients(x, batch)

    def gradients_at(
        self, y_i: np.ndarray, clients: Clients = EVERYONE, b: int | None = None
    ) -> np.ndarray:
        """g_i(y_i) of the clients, shape (clients, d), from minibatches of b samples, or full.

        y_i : one point (d,), or one for each client
        """
        local, oracle = clients.local, self.oracle
        if b is None:
            return oracle.gradients(y_i, local)
        rows = oracle.rows if local is None else oracle.rows[local]
        batch = self.star.draw("batch", clients.S).batches(rows, b)
        return oracle.batch_gradients(y_i, batch, local)


@dataclasses.dataclass
class Stochastic(Minibatches):
    """An estimator with full or, with the key ``batch``, stochastic gradients.

    batch : tau, a number of samples or a share of m, drawn in every round, without replacement
        (CD-Adam, Algorithm 1, line 4); full gradients unless given.
    """

    batch: int | float | None = None
    direction = "up"

    def check(self) -> None:
        self.tau = None if self.batch is None else self.batch_size("batch")

    def gradients(self, x: np.ndarray) -> np.ndarray:
        """g_i at x, shape (m, d)."""
        g_i = self.gradients_at(x, EVERYONE, self.tau)
        self.star.fresh(g_i)
        return g_i

    def lazy_gradients(self, x: np.ndarray) -> np.ndarray | LazyGradients:
        """The same, but full gradients are computed where they are needed, if the problem can."""
        if self.tau is not None:
            return self.gradients(x)
        g_i = self.oracle.lazy_gradients(x)
        self.star.fresh(g_i)
        return g_i

    def theory_step(self, setting: Setting) -> Step:
        full = self.batch is None and self.direction == "up"
        return self.full_step(setting) if full else super().theory_step(setting)

    def full_step(self, setting: Setting) -> Step:
        """The step size with full gradients, compressed upwards only; `InputError` if none."""
        return super().theory_step(setting)


class Timing(NamedTuple):
    """Seconds of each client, arrays (n,).

    latency : one way; down : in which a dense vector passes its link, and dense : the same, up
    up : of a compressed message; none of the three has the latency
    """

    latency: np.ndarray
    down: np.ndarray
    computing: np.ndarray
    up: np.ndarray
    dense: np.ndarray


class Clocked(Minibatches):
    """A method whose rounds take seconds on the clock of a fleet.

    samples_of : samples of each client in a pass, (n,)
    """

    now = Shared("seconds on the clock of a simulated fleet")
    spent = Shared("seconds of computing whose messages have arrived there, over all workers")

    def samples_of(self) -> np.ndarray | int:
        return self.star.all_workers(self.oracle.rows[:, None])[:, 0]

    @property
    def idle_share(self) -> float:
        """The share of the workers' seconds that no message that arrived was computed in."""
        return 1.0 - self.spent / (self.star.n * self.now) if self.now > 0 else 0.0

    def client_seconds(self, fleet: Fleet, samples: np.ndarray | int) -> Timing:
        """Seconds of the clients; `InputError` for a fleet or a compressor without simulated ones.

        samples : of the computing, of each client (n,) or of all
        """
        star = self.star
        if isinstance(fleet.seconds, str):
            raise InputError(
                f"fleet.seconds: {fleet.seconds!r} is not allowed with method {self.name!r}, whose"
                " clock is simulated; it must be a number, the seconds of a sample"
            )
        c, d = fleet.clients(np.arange(star.n)), self.compressor.d
        sizes = self.compressor.form(star.draw("length")).sizes
        if sizes is None or self.compressor.random_length:
            raise InputError(
                f"compressor.name: {self.compressor.name!r} is not allowed with method"
                f" {self.name!r}: its messages differ in length"
            )
        up = star.all_workers(8.0 * np.broadcast_to(sizes, star.m)[:, None])[:, 0]
        dense = on_wire(8.0 * np.asarray(DenseForm.of(d, 1, star.precision).sizes), 1)
        computing = fleet.seconds * samples * c.factor
        return Timing(c.latency, dense / c.down, computing, on_wire(up, 1) / c.up, dense / c.up)


class Participation(Clocked):
    """A method whose clients may drop out of a round, on the clock of ``fleet.simulate``.

    Without that key nobody does, and there is no clock. The first round waits for everyone.
    """

    delay = Shared("0 on that clock: messages are from the newest point")

    def check(self) -> None:
        if fleet := self.star.simulated:
            if fleet.invited is not None:
                raise InputError("fleet.invited: is not allowed with fleet.simulate")
            self.timing = self.client_seconds(fleet, self.samples_of())
            # of a client's taking part, apart from the deadline
            self.p_a = fleet.availability * (1 - fleet.dropout)

    def arrived(
        self, S: np.ndarray | None, passes: int, dense: bool = False, sent: bool = True
    ) -> np.ndarray | None:
        """Those of the clients S, ascending, whose messages arrive in time. Moves the clock.

        S : None for all, and then None where nothing is simulated; with repetitions, messages are
            sent one right after the other, and the latency passes once
        passes : over the samples; dense : whether messages are uncompressed
        sent : whether there are messages at all, up and down
        """
        star, fleet = self.star, self.star.simulated
        if fleet is None:
            return S
        first = star.round == 0
        if first:
            self.now = self.spent = self.delay = 0.0
        invited = np.arange(star.n) if S is None else S
        who, messages = np.unique(invited, return_counts=True)
        latency, down, computing, up, dense_up = (seconds[who] for seconds in self.timing)
        computing = passes * computing
        taken = 2 * latency + down + computing + messages * (dense_up if dense else up)
        taken = taken if sent else computing
        limit = fleet.deadline or inf
        u = star.uniforms(star.n)[who]
        there = first | (u >= 1 - fleet.availability)
        comes = first | ((u >= 1 - self.p_a) & (taken <= limit))
        waits = limit < inf and bool((there & ~comes).any())  # for those who will not come
        self.now = self.now + (limit if waits else float(taken[comes].max(initial=0.0)))
        self.spent = self.spent + sent * float(computing[comes].sum())
        return invited[np.repeat(comes, messages)]
