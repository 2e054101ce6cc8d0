"""A log of made-up rows."""

import numpy as np

from mpisim.runs.log.schema import columns, row_type

SCHEMA = columns(False)


def row(k: int) -> dict:
    """The row of round k."""
    values = (k, 0.5 + k, 0.25, *[10 * k] * 7, k, *[0.1 * k] * 8)
    return {name: value for (name, *_), value in zip(SCHEMA, values, strict=True)}


def rows(first: int, last: int) -> np.ndarray:
    """The rows of rounds first, ..., last - 1."""
    kind = row_type(SCHEMA)
    return np.array([tuple(row(k)[name] for name in kind.names) for k in range(first, last)], kind)
