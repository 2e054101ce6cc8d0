"""Compressed vectors of a rank's workers, on their way to the server."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from mpisim.compressors.base import Compressor
from mpisim.core.arrays import FALLBACK, in_host_memory, is_tensor, to_host
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

    def add_to(self, rows: np.ndarray, factor: float = 1.0) -> np.ndarray:
        """``rows`` (m, d) plus ``factor`` times what the server will see, in place."""
        if factor == 1:
            self.message.add_to(rows)
        else:
            rows += factor * self.decoded()
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


def compressed(compressor: Compressor, v: Any, draw: Draw) -> Message:
    """The messages of a block of workers with vectors ``v`` (m, d), which may be tensors.

    These are compressed on their device, or on the host where the compressor or the memory is
    there.
    """
    if not is_tensor(v):
        return compressor.compress(v, draw)
    from mpisim.wire.placed import placed  # imports PyTorch, and has the packers of tensors

    if compressor.on_device and not in_host_memory(v.device):
        return compressor.compress(v, draw)
    return placed(compressor.compress(to_host(v, FALLBACK), draw), v.device)


def received(message: Message, device: Any) -> Message:
    """``message``, decoded to tensors on ``device``."""
    from mpisim.wire.placed import placed

    return placed(message, device)
