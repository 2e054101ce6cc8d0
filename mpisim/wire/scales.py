"""Norms and scales as they cross the wire: rounded once, and NaN where they are not finite."""

from __future__ import annotations

import numpy as np
from numba import njit

from mpisim.core.errors import WireError
from mpisim.wire.codecs.buffer import raw


def round_scales(scales: np.ndarray, wire: np.dtype, up: bool = False) -> np.ndarray:
    """``scales`` (float64, >= 0) in wire precision; what is not finite there becomes the quiet NaN.

    ``up`` rounds to the next value that is not smaller, else to the nearest.
    """
    out = np.empty(scales.shape, wire)
    flat = out.reshape(-1)
    round_into(np.ascontiguousarray(scales).reshape(-1), flat, raw(flat), up)
    return out


def check_scales(scales: np.ndarray) -> None:
    """`WireError` unless all scales (workers, k), C order, are >= 0 (not -0) or quiet NaNs."""
    worker = _first_wrong(raw(scales))
    if worker >= 0:
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
def _first_wrong(unsigned):
    """The first row with bits that are neither the quiet NaN's nor of a number >= 0; else -1."""
    infinity, nan = np.uint64(0x7FF0 << 48), np.uint64(0x7FF8 << 48)
    if unsigned.itemsize == 4:
        infinity, nan = np.uint64(0x7F800000), np.uint64(0x7FC00000)
    for i in range(unsigned.shape[0]):
        for bits in unsigned[i]:
            if bits >= infinity and bits != nan:
                return i
    return -1
