"""Which rank holds which workers."""

from __future__ import annotations

import numpy as np


def worker_ranks(ranks: int, layout: str) -> int:
    """How many ranks hold workers: all, or all but the server in the layout "dedicated"."""
    return ranks if layout == "shared" or ranks == 1 else ranks - 1


def ranks_for(n: int, layout: str) -> int:
    """How many ranks give each of n workers a rank of its own."""
    return n if layout == "shared" else n + 1


def starts(n: int, ranks: int, layout: str) -> np.ndarray:
    """First worker of each rank, and n, shape (ranks + 1,): blocks as even as possible."""
    helpers = worker_ranks(ranks, layout)
    first = [n * r // helpers for r in range(helpers + 1)]
    return np.array([0] * (ranks - helpers) + first)
