"""A log of made-up rows."""

from __future__ import annotations

import numpy as np

from mpisim.runs.log.schema import columns, row_type

SCHEMA = columns(False)


def row(k: int) -> tuple:
    """The row of round k."""
    return (k, 0.5 + k, 0.25, *[10 * k] * 7, k, *[0.1 * k] * 8)


def rows(first: int, last: int) -> np.ndarray:
    """The rows of rounds first, ..., last - 1."""
    return np.array([row(k) for k in range(first, last)], row_type(SCHEMA))
