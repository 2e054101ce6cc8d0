"""Minibatches of the variance-reduced methods."""

from __future__ import annotations

from math import ceil

from mpisim.errors import InputError


def batch_size(value: int | float, samples: int, key: str) -> int:
    """b' from a ``[method]`` key: a number of samples, or the share of a worker's samples, ceiled.

    ``samples``: m, the least number that a worker has. `InputError` unless 1 <= b' <= m.
    """
    b = ceil(value * samples) if isinstance(value, float) and 0 < value < 1 else value
    if not isinstance(b, int) or not 1 <= b <= samples:
        raise InputError(
            f"method.{key}: {value!r} is not allowed; it must be an integer from 1 to"
            f" m = {samples}, or a share of m between 0 and 1"
        )
    return b
