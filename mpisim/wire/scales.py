"""Norms and scales as they cross the wire: rounded once, and NaN where they are not finite."""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.core.errors import WireError
from mpisim.wire.codecs.buffer import raw

INFINITY = {4: np.uint64(0x7F800000), 8: np.uint64(0x7FF0 << 48)}
QUIET_NAN = {4: np.uint64(0x7FC00000), 8: np.uint64(0x7FF8 << 48)}


def round_scales(scales: np.ndarray, wire: np.dtype, up: bool = False) -> np.ndarray:
    """``scales`` (float64, >= 0) in wire precision; what is not finite there becomes the quiet NaN.

    ``up`` rounds to the next value that is not smaller, else to the nearest.
    """
    out = np.empty(scales.shape, wire)
    flat = out.reshape(-1)
    round_into(np.ascontiguousarray(scales).reshape(-1), flat, raw(flat), up)
    return out


def check_scales(scales: np.ndarray) -> None:
    """`WireError` unless all scales (workers, ...), C order, are >= 0 (not -0) or quiet NaNs."""
    size = scales.itemsize
    wrong = _first_wrong(raw(scales).reshape(-1), INFINITY[size], QUIET_NAN[size])
    if wrong >= 0:
        worker = wrong * len(scales) // scales.size
        raise WireError(
            f"message {worker} of the block is not valid: its norm is not finite and >= 0"
        )


@njit(cache=True)
def round_into(scales, out, unsigned, up):
    """`round_scales` of a row, into ``out``, whose memory ``unsigned`` is as well.

    For numbers >= 0 the order of ``unsigned`` is that of the numbers.
    """
    for i in range(scales.size):
        out[i] = scales[i]
        if up and out[i] < scales[i]:
            unsigned[i] += 1
        if not np.isfinite(out[i]):
            out[i] = np.nan


@njit(cache=True)
def _first_wrong(unsigned, infinity, nan):
    """The first place of bits that are neither the quiet NaN's nor of a number >= 0; else -1."""
    for i in range(unsigned.size):
        if unsigned[i] >= infinity and unsigned[i] != nan:
            return i
    return -1
