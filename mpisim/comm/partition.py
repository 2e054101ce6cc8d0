"""Which rank holds which workers."""

from __future__ import annotations

import numpy as np


def worker_ranks(ranks: int, layout: str) -> int:
    """How many of the ranks hold workers."""
    if layout == "shared" or ranks == 1:
        return ranks
    return ranks - 1


def deal(n: int, ranks: int) -> np.ndarray:
    """First worker of each rank, and n, shape (ranks + 1,): blocks as even as possible."""
    return np.array([n * r // ranks for r in range(ranks + 1)])


def starts(n: int, ranks: int, layout: str) -> np.ndarray:
    """First worker of each rank, and n, shape (ranks + 1,); a dedicated server has none."""
    helpers = worker_ranks(ranks, layout)
    dealt = deal(n, helpers)
    return dealt if helpers == ranks else np.concatenate([[0], dealt])
