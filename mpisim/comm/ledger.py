"""The bits and messages sent up, and the bits down, counted on the server as integers."""

from __future__ import annotations

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

NOBODY = np.empty(0, np.int64)


class Ledger:
    """Cumulative bits and messages of a run over ``n`` workers."""

    def __init__(self, n: int):
        self.n = n
        self.totals = dict.fromkeys(COLUMNS, 0)
        self.worker_bits_up = np.zeros(n, np.int64)
        self._rounds = 1  # that began, with the one in progress
        self._largest = 0  # bits of a worker in this round
        # of each worker: the last round in which it sent, and its bits in that
        self._last, self._in_round = np.zeros((2, n), np.int64)

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
        senders = NOBODY if clients is None else clients
        bits, paper_bits, size, messages, self._largest = _charge(
            self.worker_bits_up, self._last, self._in_round, self._rounds, self._largest,
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


@njit(cache=True)
def _charge(total, last, in_round, round, largest, senders, payload, paper, sizes, empty_too):
    """Add payload to the bits of ``senders``, or of all workers where it is empty.

    A sender may be there twice. Returns the sums of payload, paper and sizes, how many messages
    there are, and the bits of the worker that has sent most in this round.
    """
    everyone, messages = senders.size < payload.size, 0
    for t in range(payload.size if everyone else 0):  # loops that become vector instructions
        total[t] += payload[t]
        in_round[t] = (in_round[t] if last[t] == round else 0) + payload[t]
        last[t] = round
        largest = max(largest, in_round[t])
    for t in range(0 if everyone else payload.size):
        i = senders[t]
        total[i] += payload[t]
        in_round[i] = (in_round[i] if last[i] == round else 0) + payload[t]
        last[i] = round
        largest = max(largest, in_round[i])
    for t in range(payload.size):
        messages += empty_too or sizes[t] > 0
    return payload.sum(), paper.sum(), sizes.sum(), messages, largest
