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
        self._rounds = 1  # that began, with the one in progress
        self._largest = 0  # bits of a worker in this round
        self._round_up = np.zeros((n, 2), np.int64)  # a worker's last round, and its bits in it

    def up(
        self,
        payload: np.ndarray,
        paper: np.ndarray,
        sizes: np.ndarray,
        length_bits: int = 0,
        clients: np.ndarray | None = None,
    ) -> None:
        """Charge one gather: ``payload`` and ``paper`` bits of each client (default: all workers).

        sizes : bytes of each message; what is beyond the payload is framing
        length_bits : of each message's length, where that crosses; else an empty message is none
        """
        senders = _all(self.n) if clients is None else clients
        bits, paper_bits, size, messages, self._largest = _charge(
            self.worker_bits_up, self._round_up, self._rounds, self._largest,
            senders, payload, paper, sizes, length_bits > 0,
        )  # fmt: skip
        totals = self.totals
        totals["bits_up"] += bits
        totals["framing_bits_up"] += 8 * size + length_bits * messages - bits
        totals["paper_bits_up"] += paper_bits
        totals["messages_up"] += messages

    def down(self, payload: int, sent: int) -> None:
        """Charge ``sent`` bits, ``payload`` of them as payload, summed over those who receive."""
        self.totals["bits_down"] += payload
        self.totals["framing_bits_down"] += sent - payload

    def end_round(self) -> None:
        """Close the round: add the bits of the worker that sent most to ``bits_up_max``."""
        self.totals["bits_up_max"] += self._largest
        self._largest, self._rounds = 0, self._rounds + 1

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
def _charge(total, round_up, round, largest, senders, payload, paper, sizes, empty_too):
    """Add payload to the senders' bits; a worker may be among them twice.

    Returns the sums of payload, paper and sizes, how many messages there are, and the bits of the
    worker that has sent most in this round.
    """
    payload_sum = paper_sum = size_sum = messages = 0
    for t in range(senders.size):
        i, bits = senders[t], payload[t]
        total[i] += bits
        if round_up[i, 0] != round:
            round_up[i, 0], round_up[i, 1] = round, 0
        round_up[i, 1] += bits
        largest = max(largest, round_up[i, 1])
        payload_sum += bits
        paper_sum += paper[t]
        size_sum += sizes[t]
        messages += empty_too or sizes[t] > 0
    return payload_sum, paper_sum, size_sum, messages, largest
