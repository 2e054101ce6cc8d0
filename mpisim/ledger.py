"""Bits and bytes: what was sent up and down, kept on the server, in whole numbers."""

from __future__ import annotations

import numpy as np

COLUMNS = {
    "bits_up": "payload bits sent by workers so far, summed over workers",
    "bits_down": "payload bits sent by the server so far, summed over the receiving workers",
    "bits_up_max": "payload bits up so far of the worker that sent most in each round",
    "framing_bits_up": "headers, lengths and padding up so far, summed over workers",
    "framing_bits_down": "headers, lengths and padding down so far, summed over workers",
    "paper_bits_up": "bits up so far as the compressor's paper charges them, summed over workers",
}


class Ledger:
    """Cumulative bits of a run over ``n`` workers."""

    def __init__(self, n: int):
        self.n = n
        self.totals = dict.fromkeys(COLUMNS, 0)
        self.worker_bits_up = np.zeros(n, np.int64)
        self._round_up = np.zeros(n, np.int64)

    def up(
        self, payload: np.ndarray, framing: int, paper: int, clients: np.ndarray | None = None
    ) -> None:
        """One gather: ``payload`` bits of each client (all workers); framing, paper bits in all."""
        if clients is None:
            self._round_up += payload
        else:
            self._round_up[clients] += payload
        self.totals["bits_up"] += int(payload.sum())
        self.totals["framing_bits_up"] += framing
        self.totals["paper_bits_up"] += paper

    def down(self, payload: int, framing: int) -> None:
        """One broadcast: every worker receives ``payload`` + ``framing`` bits."""
        self.totals["bits_down"] += self.n * payload
        self.totals["framing_bits_down"] += self.n * framing

    def end_round(self) -> None:
        """Close the round: the worker that sent most in it counts in ``bits_up_max``."""
        self.totals["bits_up_max"] += int(self._round_up.max())
        self.worker_bits_up += self._round_up
        self._round_up[:] = 0

    def state(self) -> dict[str, np.ndarray]:
        """What a checkpoint keeps, taken between rounds."""
        return {
            "totals": np.array(list(self.totals.values())),
            "worker_bits_up": self.worker_bits_up,
        }

    def restore(self, state: dict[str, np.ndarray]) -> None:
        """The inverse of `state`."""
        self.totals = dict(zip(self.totals, state["totals"].tolist(), strict=True))
        self.worker_bits_up = state["worker_bits_up"]
