"""Standard normal numbers at an address."""

from __future__ import annotations

import numpy as np

from mpisim.core.functions import normal_quantiles
from mpisim.core.rng import Streams


def standard_normals(seed: int, purpose: str, workers: int, count: int) -> np.ndarray:
    """Shape (workers, count), float64: functions of (seed, purpose, worker)."""
    words = Streams(seed).raw(purpose, 0, 0, workers, count)
    return normal_quantiles(((words >> np.uint64(11)) + 0.5) * 2.0**-53)
