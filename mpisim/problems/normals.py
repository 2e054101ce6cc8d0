"""Standard normal numbers at an address."""

from __future__ import annotations

import numpy as np

from mpisim.core.rng import Streams, normals

BLOCK = 1 << 16  # workers whose numbers are made together


def standard_normals(seed: int, purpose: str, workers: int, count: int) -> np.ndarray:
    """Shape (workers, count), float64: functions of (seed, purpose, worker)."""
    out, streams = np.empty((workers, count)), Streams(seed)
    for first in range(0, workers, BLOCK):  # the steps between need several such arrays
        some = out[first : first + BLOCK]
        some[:] = normals(streams.raw(purpose, 0, first, len(some), count))
    return out
