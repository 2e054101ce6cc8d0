"""Standard normal numbers at an address."""

from __future__ import annotations

import numpy as np

from mpisim.core.numerics.functions import normal_quantiles
from mpisim.core.rng import Streams

BLOCK = 1 << 16  # workers whose numbers are made together


def standard_normals(seed: int, purpose: str, workers: int, count: int) -> np.ndarray:
    """Shape (workers, count), float64: functions of (seed, purpose, worker)."""
    normals, streams = np.empty((workers, count)), Streams(seed)
    for first in range(0, workers, BLOCK):  # the steps between need several such arrays
        some = normals[first : first + BLOCK]
        words = streams.raw(purpose, 0, first, len(some), count)
        some[:] = normal_quantiles(((words >> np.uint64(11)) + 0.5) * 2.0**-53)
    return normals
