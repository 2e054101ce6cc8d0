"""Seconds of clients on a ``[fleet]``, and rounds in which some drop out or come too late."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np

from mpisim.comm.fleet import Fleet
from mpisim.comm.links import on_wire
from mpisim.core.errors import InputError
from mpisim.core.state import Shared
from mpisim.methods.estimators.base import Estimator
from mpisim.wire.values import DenseForm


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


def client_seconds(its: Estimator, fleet: Fleet, samples: np.ndarray | int) -> Timing:
    """Seconds of the clients; `InputError` for a fleet or a compressor without simulated ones.

    samples : of the computing, of each client (n,) or of all
    """
    star = its.star
    if isinstance(fleet.seconds, str):
        raise InputError(
            f"fleet.seconds: {fleet.seconds!r} is not allowed with method {its.name!r}, whose"
            " clock is simulated; it must be a number, the seconds of a sample"
        )
    c, d = fleet.clients(np.arange(star.n)), its.compressor.d
    sizes = its.compressor.form(star.draw("length")).sizes
    if sizes is None:
        raise InputError(
            f"compressor.name: {its.compressor.name!r} is not allowed with method"
            f" {its.name!r}: its messages differ in length"
        )
    up = star.all_workers(8.0 * np.broadcast_to(sizes, star.m)[:, None])[:, 0]
    dense = on_wire(8.0 * np.asarray(DenseForm.of(d, 1, star.precision).sizes), 1)
    computing = fleet.seconds * samples * c.factor
    return Timing(c.latency, dense / c.down, computing, on_wire(up, 1) / c.up, dense / c.up)


class Clocked(Estimator):
    """A method whose rounds take seconds on the clock of a fleet."""

    now = Shared("simulated seconds")
    spent = Shared("seconds of computing whose messages have arrived, over all workers")

    @property
    def idle_share(self) -> float:
        """The share of the workers' seconds that no message that arrived was computed in."""
        return 1.0 - self.spent / (self.star.n * self.now) if self.now > 0 else 0.0


class Participation(Clocked):
    """A method whose clients may drop out of a round, on the clock of ``fleet.simulate``.

    Without that key nobody does, and there is no clock. The first round waits for everyone.

    samples_of : samples of each client in a pass, (n,)
    """

    delay = Shared("0: messages are from the newest point")

    def samples_of(self) -> np.ndarray | int:
        return self.star.all_workers(self.oracle.rows[:, None])[:, 0]

    def check(self) -> None:
        if fleet := self.star.simulated:
            if fleet.invited is not None:
                raise InputError("fleet.invited: is not allowed with fleet.simulate")
            self.timing = client_seconds(self, fleet, self.samples_of())
            # of a client's taking part, apart from the deadline
            self.p_a = fleet.availability * (1 - fleet.dropout)

    def arrived(self, S: np.ndarray | None, passes: int, dense: bool = False) -> np.ndarray | None:
        """Those of the clients S, ascending, whose messages arrive in time. Moves the clock.

        S : None for all, and then None where nothing is simulated; with repetitions, messages are
            sent one right after the other, and the latency passes once
        passes : over the samples; dense : whether messages are uncompressed
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
        limit = fleet.deadline or inf
        u = star.uniforms(star.n)[who]
        there = first | (u >= 1 - fleet.availability)
        comes = first | ((u >= 1 - self.p_a) & (taken <= limit))
        waits = limit < inf and bool((there & ~comes).any())  # for those who will not come
        self.now = self.now + (limit if waits else float(taken[comes].max(initial=0.0)))
        self.spent = self.spent + float(computing[comes].sum())
        return invited[np.repeat(comes, messages)]
