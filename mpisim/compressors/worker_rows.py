"""Data of each worker, sent once before round 0, that the worker and the server both know."""

from __future__ import annotations

import dataclasses

import numpy as np

from mpisim.core.errors import InputError
from mpisim.core.protocols import Uplink
from mpisim.core.rng import Draw


@dataclasses.dataclass(frozen=True)
class WorkerRows:
    """A row for each worker that this rank knows: all at the server, its own elsewhere.

    first : the worker of row 0
    rows : array, shape (workers known, ...)
    """

    first: int
    rows: np.ndarray

    def which(self, draw: Draw) -> np.ndarray:
        """The rows of the workers that draw, shape (draw.workers,), int64."""
        start = draw.first - self.first
        if start < 0 or start + draw.count > len(self.rows) or draw.purpose == "down":
            raise InputError(
                "compressor.name: 'smooth' is fitted to each worker's L_i and cannot compress"
                " messages of the server"
            )
        return start + draw.members

    def of(self, draw: Draw) -> np.ndarray:
        """The rows of the workers that draw, shape (draw.workers, ...)."""
        which = self.which(draw)
        if draw.clients is not None:
            return self.rows[which]
        return self.rows[draw.first - self.first :][: draw.count]  # without a copy

    def one(self, worker: int) -> np.ndarray:
        """The row of a worker, numbered over all ranks."""
        return self.rows[worker - self.first]

    def map(self, function) -> WorkerRows:
        """``function`` of each row."""
        rows = [function(row) for row in self.rows]
        shape = function(np.ones(self.rows.shape[1:])).shape if not rows else rows[0].shape
        return WorkerRows(self.first, np.array(rows, np.float64).reshape(len(rows), *shape))


def send_once(star: Uplink, rows: np.ndarray) -> WorkerRows:
    """Send ``rows`` (m, k) of this rank's workers; returns the decoded rows. Collective."""
    return WorkerRows(*star.send_once(rows))
