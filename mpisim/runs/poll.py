"""Let all ranks check clock and signals together while rows of the log are far apart."""

from __future__ import annotations

from time import monotonic

import numpy as np

from mpisim.comm.clock import COMMUNICATE, OTHER
from mpisim.comm.star import Star
from mpisim.core.ordered_sums import add_rows

SECONDS = 1.0  # between two checks, approximately
FASTER = 2  # the number of rounds between two checks grows by at most this factor


class Poll:
    """A check about once a second, from round ``first`` on; ``next`` is the round of the next one.

    A check is a message of two numbers that passes all ranks. It carries rank 0's estimate of the
    rounds until the next check, so that all ranks know its round.
    """

    def __init__(self, star: Star, first: int):
        self.star, self.next = star, first + 1
        self._pace, self._k, self._since = 1, first, monotonic()

    def wished(self, k: int, wish: bool) -> bool:
        """Whether some rank has a ``wish`` before round k. Collective."""
        clock = self.star.clock
        clock.to(COMMUNICATE)
        own = np.array([[wish, self._measured(k) if self.star.is_server else 0]], float)
        total = np.zeros(2)
        self.star.relay(total, lambda total: add_rows(total, own))
        wishes, self._pace = (int(number) for number in total)
        self.next = k + self._pace
        clock.to(OTHER)
        return wishes > 0

    def _measured(self, k: int) -> int:
        """Rounds until the next check, by rank 0's clock since the last one."""
        now = monotonic()
        rounds, seconds = k - self._k, now - self._since
        self._k, self._since = k, now
        return max(1, min(FASTER * self._pace, int(rounds * SECONDS / max(seconds, 1e-9))))
