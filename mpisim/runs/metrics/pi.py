"""What compression loses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numba import njit

from mpisim.comm.upload import Upload
from mpisim.core.arrays import METRIC, to_host
from mpisim.core.lazy_rows import LazyRows
from mpisim.core.state import AtServer, PerWorker, Shared
from mpisim.runs.log.schema import Column
from mpisim.runs.metrics.base import Metric, metric


@metric("pi")
class Pi(Metric):
    """pi of Assumption 4.1 of CD-Adam's paper, measured: |C(v) - v|^2 / |v|^2 (0 for v = 0).

    ``pi_code`` is what the paper's published code prints: 1 - |C(v) - v| / |v| at the server, where
    |v| is the sum over a network's tensors of their norms. Row k has the values of round k - 1; NaN
    if nothing was compressed in it.
    """

    columns: ClassVar[Sequence[Column]] = [
        ("pi_up", np.float64, "1", "|C(v) - v|^2 / |v|^2 of round k - 1, mean over its senders"),
        ("pi_up_max", np.float64, "1", "|C(v) - v|^2 / |v|^2 of round k - 1, largest of a sender"),
        ("pi_down", np.float64, "1", "|C(v) - v|^2 / |v|^2 of round k - 1, at the server"),
        (
            "pi_code",
            np.float64,
            "1",
            "1 - |C(v) - v| / |v| of round k - 1, at the server, by layer",
        ),
    ]

    pi_i = PerWorker("of its senders")
    pi = AtServer("of the server's message")
    pi_code = AtServer("of it, by layer")
    round = Shared("whose values they are")

    def check(self) -> None:
        self.starts = np.concatenate([[0], np.cumsum(self.problem.layers)])
        self._forget()

    def _forget(self) -> None:
        self.pi_i = np.full(self.star.m, np.nan)
        self.pi = self.pi_code = np.nan
        self.round = self.star.round

    def _due(self) -> bool:
        """Whether this round's values are written; forgets those of an earlier round."""
        if self.round != self.star.round:
            self._forget()
        return self.logged(self.star.round + 1)

    def up(self, v: np.ndarray | LazyRows, upload: Upload) -> None:
        if self._due():
            rows = v.dense() if isinstance(v, LazyRows) else to_host(v, METRIC)
            self.pi_i[upload.draw.members] = _losses(rows, to_host(upload.decoded(), METRIC))

    def down(self, v: np.ndarray, decoded: np.ndarray) -> None:
        if self._due():
            v, decoded = to_host(v, METRIC), to_host(decoded, METRIC)
            self.pi = float(_losses(v[None], decoded[None])[0])
            lost, whole = _norms(decoded - v, self.starts), _norms(v, self.starts)
            self.pi_code = 1 - (lost / whole if whole > 0 else 0.0)

    def values(self, x: np.ndarray) -> tuple[float, ...]:
        if self.round != self.star.round - 1:
            self._forget()
        pi_i = self.star.gather_workers(self.pi_i)
        sent = self.pi_i[:0] if pi_i is None else pi_i[~np.isnan(pi_i)]
        mean, largest = (float(sent.mean()), float(sent.max())) if sent.size else (np.nan,) * 2
        return mean, largest, self.pi, self.pi_code


@njit(cache=True)
def _losses(v, decoded):
    """|decoded_i - v_i|^2 / |v_i|^2 of each row, shape (m,), float64."""
    out = np.empty(v.shape[0])
    for i in range(v.shape[0]):
        lost = whole = 0.0
        for j in range(v.shape[1]):
            whole += np.float64(v[i, j]) ** 2
            lost += (np.float64(decoded[i, j]) - np.float64(v[i, j])) ** 2
        out[i] = lost / whole if whole > 0 else 0.0
    return out


@njit(cache=True)
def _norms(v, starts):
    """sum_l |v_l| over the parts of v (d,), which begin at ``starts``."""
    total = 0.0
    for part in range(starts.size - 1):
        square = 0.0
        for j in range(starts[part], starts[part + 1]):
            square += np.float64(v[j]) ** 2
        total += np.sqrt(square)
    return total
