"""The bits and messages sent up, and the bits down, counted on the server as integers."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numba import njit

COLUMNS = {
    "bits_up": "payload bits sent by workers so far, summed over workers",
    "bits_down": "payload bits sent by the server so far, summed over the receiving workers",
    "bits_up_max": "payload bits up so far of the worker that sent most in each round",
    "framing_bits_up": "headers, lengths and padding up so far, summed over workers",
    "framing_bits_down": "headers, lengths and padding down so far, summed over workers",
    "paper_bits_up": "bits up so far as the compressor's paper charges them, summed over workers",
    "messages_up": "messages of a byte or more sent so far, summed over workers",
}


class Ledger:
    """Cumulative bits and messages of a run over ``n`` workers."""

    def __init__(self, n: int):
        self.n = n
        self.totals = dict.fromkeys(COLUMNS, 0)
        self.worker_bits_up = np.zeros(n, np.int64)
        self._round_up = np.zeros(n, np.int64)
        self._senders: list[np.ndarray] = []  # of this round; a worker may be among them twice

    def up(
        self,
        payload: np.ndarray,
        sent: int,
        paper: np.ndarray,
        clients: np.ndarray | None = None,
        *,
        messages: int,
    ) -> None:
        """Charge one gather: ``payload`` and ``paper`` bits of each client (default: all workers).

        sent : all bits sent; those beyond the payload are framing
        messages : how many are not empty
        """
        senders = _all(self.n) if clients is None else clients
        self._senders.append(senders)
        payload_sum, paper_sum = _charge(self._round_up, senders, payload, paper)
        self.totals["bits_up"] += payload_sum
        self.totals["framing_bits_up"] += sent - payload_sum
        self.totals["paper_bits_up"] += paper_sum
        self.totals["messages_up"] += messages

    def down(self, payload: int, sent: int) -> None:
        """Charge one broadcast of ``sent`` bits to every worker, ``payload`` of them as payload."""
        self.totals["bits_down"] += self.n * payload
        self.totals["framing_bits_down"] += self.n * (sent - payload)

    def end_round(self) -> None:
        """Close the round: add the bits of the worker that sent most to ``bits_up_max``."""
        largest = 0
        for senders in self._senders:
            largest = max(largest, _close(self.worker_bits_up, self._round_up, senders))
        self._senders.clear()
        self.totals["bits_up_max"] += largest

    def state(self) -> dict[str, np.ndarray]:
        """What a checkpoint keeps between rounds."""
        return {
            "totals": np.array(list(self.totals.values())),
            "worker_bits_up": self.worker_bits_up,
        }

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """The inverse of `state`."""
        self.totals = dict(zip(self.totals, state["totals"].tolist(), strict=True))
        self.worker_bits_up = state["worker_bits_up"]


@lru_cache(maxsize=4)
def _all(n: int) -> np.ndarray:
    """All n workers, read-only."""
    workers = np.arange(n)
    workers.flags.writeable = False
    return workers


@njit(cache=True)
def _charge(round_up, senders, payload, paper):
    """Add payload to round_up of the senders; return the sums of payload and paper."""
    payload_sum = paper_sum = 0
    for t in range(senders.size):
        round_up[senders[t]] += payload[t]
        payload_sum += payload[t]
        paper_sum += paper[t]
    return payload_sum, paper_sum


@njit(cache=True)
def _close(total, round_up, senders):
    """Move round_up of the senders to total; return its largest entry."""
    largest = 0
    for i in senders:
        largest = max(largest, round_up[i])
        total[i] += round_up[i]
        round_up[i] = 0
    return largest
