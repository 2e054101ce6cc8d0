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

BITS_UP, BITS_DOWN, BITS_UP_MAX, FRAMING_UP, FRAMING_DOWN, PAPER_UP, MESSAGES_UP = range(7)
NOBODY = np.empty(0, np.int64)


class Ledger:
    """Cumulative bits and messages of a run over ``n`` workers, or of an ensemble of ``runs``.

    worker_bits_up : shape (runs n,), int64, run by run
    """

    def __init__(self, n: int, runs: int = 1):
        self.n = n
        self._counts = np.zeros((runs, len(COLUMNS)), np.int64)
        self.worker_bits_up = np.zeros(runs * n, np.int64)
        self._rounds = 1  # that began, with the one in progress
        self._largest = np.zeros(runs, np.int64)  # bits of a worker in the last round with uploads
        self._of = np.zeros(1, np.int64)  # this round
        self._down = self._framing_down = 0  # of each run, not among the counts yet
        # of each worker: the last round in which it sent, and its bits in that
        self._last, self._in_round = np.zeros((2, runs * n), np.int64)

    @property
    def counts(self) -> np.ndarray:
        """The totals by run and column, shape (runs, columns), int64."""
        if self._of[0] != self._rounds:  # asked several times for each row of the log
            _settle(self._counts, self._largest, self._of, self._rounds)
        if self._down or self._framing_down:
            self._counts[:, BITS_DOWN] += self._down
            self._counts[:, FRAMING_DOWN] += self._framing_down
            self._down = self._framing_down = 0
        return self._counts

    @property
    def totals(self) -> dict[str, int]:
        """The counts of the first run, by column."""
        return dict(zip(COLUMNS, self.counts[0].tolist(), strict=True))

    def up(
        self,
        payload: np.ndarray,
        paper: np.ndarray,
        sizes: np.ndarray,
        length_bits: int = 0,
        clients: np.ndarray | None = None,
    ) -> None:
        """Charge one gather: ``payload`` and ``paper`` bits of each client (default: all workers).

        clients : ascending; of an ensemble, numbered run by run

        sizes : bytes of each message; what is beyond the payload is framing
        length_bits : of each message's length, where that crosses; else an empty message is none
        """
        senders = NOBODY if clients is None else clients
        _charge(
            self._counts, self.worker_bits_up, self._last, self._in_round, self._rounds,
            self._largest, self._of, senders, payload, paper, sizes, length_bits,
        )  # fmt: skip

    def down(self, payload: int, sent: int) -> None:
        """Charge each run ``sent`` bits, ``payload`` of them as payload, summed over receivers."""
        self._down += payload
        self._framing_down += sent - payload

    def end_round(self) -> None:
        """Close the round, so that the bits of the worker that sent most count."""
        self._rounds += 1

    def state(self, run: int = 0) -> dict[str, np.ndarray]:
        """What a checkpoint keeps of a run between rounds."""
        return {"totals": self.counts[run], "worker_bits_up": self._workers(run)}

    def restore(self, state: dict[str, np.ndarray], run: int = 0) -> None:
        """The inverse of `state`."""
        self.counts[run], self._workers(run)[:] = state["totals"], state["worker_bits_up"]

    def _workers(self, run: int) -> np.ndarray:
        return self.worker_bits_up[run * self.n : (run + 1) * self.n]


@njit(cache=True)
def _charge(
    counts, total, last, in_round, round, largest, of, senders, payload, paper, sizes, length_bits
):
    """Add a gather to the ``counts`` of each run, and payload to the bits of its workers.

    The senders are all workers where ``senders`` is empty; a sender may be there twice. ``largest``
    are the bits of the worker that has sent most in this round, of each run.
    """
    _settle(counts, largest, of, round)
    everyone, n = senders.size < payload.size, total.size // counts.shape[0]
    for run in range(counts.shape[0]):
        first, stop, messages = run * n, (run + 1) * n, 0
        if everyone:
            where = slice(first, stop)
            most = _add(total[where], last[where], in_round[where], round, payload[where])
        else:
            first, stop = np.searchsorted(senders, first), np.searchsorted(senders, stop)
            most = _add_to(total, last, in_round, round, senders[first:stop], payload[first:stop])
        largest[run] = max(largest[run], most)
        bits, size = payload[first:stop].sum(), sizes[first:stop]
        for t in range(size.size):
            messages += length_bits > 0 or size[t] > 0
        row = counts[run]
        row[BITS_UP] += bits
        row[FRAMING_UP] += 8 * size.sum() + length_bits * messages - bits
        row[PAPER_UP] += paper[first:stop].sum()
        row[MESSAGES_UP] += messages


@njit(cache=True)
def _add(total, last, in_round, round, payload):
    """Of all workers, in loops that become vector instructions; the most of one in this round."""
    most = 0
    for t in range(payload.size):
        total[t] += payload[t]
        in_round[t] = (in_round[t] if last[t] == round else 0) + payload[t]
        last[t] = round
        most = max(most, in_round[t])
    return most


@njit(cache=True)
def _add_to(total, last, in_round, round, senders, payload):
    """`_add`, of some workers."""
    most = 0
    for t in range(payload.size):
        i = senders[t]
        total[i] += payload[t]
        in_round[i] = (in_round[i] if last[i] == round else 0) + payload[t]
        last[i] = round
        most = max(most, in_round[i])
    return most


@njit(cache=True)
def _settle(counts, largest, of, round):
    """Count the largest bits of a worker in round of[0], once a later one is in progress."""
    if of[0] != round:
        for run in range(counts.shape[0]):
            counts[run, BITS_UP_MAX] += largest[run]
            largest[run] = 0
        of[0] = round
