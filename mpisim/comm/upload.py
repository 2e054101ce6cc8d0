"""What workers send to the server: compressed, or uncompressed and a few workers at a time."""

from __future__ import annotations

import dataclasses

import numpy as np

from mpisim.compressors.base import Compressor
from mpisim.core.lazy_rows import LazyRows
from mpisim.core.numerics.sums import rounded
from mpisim.core.rng import Draw
from mpisim.wire.base import Message


@dataclasses.dataclass(eq=False)
class Upload:
    """Compressed vectors of this rank's workers, on their way to the server."""

    compressor: Compressor
    draw: Draw
    message: Message

    def decoded(self) -> np.ndarray:
        """What the server will see, shape (m, d)."""
        return self.message.decoded()

    def add_to(self, rows: np.ndarray) -> np.ndarray:
        """Add what the server will see to ``rows`` (m, d) in place, and return them."""
        self.message.add_to(rows)
        return rows


@dataclasses.dataclass(eq=False)
class LazyUpload:
    """Uncompressed vectors of this rank's workers that are not computed yet.

    A few workers at a time are computed, encoded, sent and decoded.
    """

    compressor: Compressor
    vectors: LazyRows

    def decoded(self) -> np.ndarray:
        """What the server will see, shape (m, d)."""
        v, precision = self.vectors, self.compressor.precision
        out = np.empty(v.shape, precision.arithmetic)
        for which, rows in v.parts():
            out[which] = rounded(rows, precision.wire)
        return out


class Observer:
    """Sees what is compressed and estimated; its time is not charged."""

    def up(self, v: np.ndarray | LazyRows, upload: Upload) -> None:
        """Called when this rank's workers have compressed v (senders, d)."""

    def down(self, v: np.ndarray, decoded: np.ndarray) -> None:
        """Called at the server when it has compressed v (d,) for all."""

    def fresh(self, g_i: np.ndarray | LazyRows) -> None:
        """Called with the gradients (m, d) that an estimate begins with. Collective."""

    def estimated(self, g_hat: np.ndarray, g: np.ndarray) -> None:
        """Called with the estimate (d,) at the server, and as all workers decode it."""
