"""Norms and scales as they cross the wire: rounded once, and never to something misleading."""

from __future__ import annotations

import numpy as np

from mpisim.errors import WireError


def round_scales(scales: np.ndarray, wire: np.dtype, up: bool = False) -> np.ndarray:
    """``scales`` (float64, >= 0) in wire precision; what is not finite there becomes the quiet NaN.

    ``up`` rounds to the next value that is not smaller, else to the nearest.
    """
    with np.errstate(over="ignore"):
        out = scales.astype(wire)
    if up:
        out = np.where(out < scales, np.nextafter(out, wire.type(np.inf)), out)
    return np.where(np.isfinite(out), out, wire.type(np.nan))


def check_scales(scales: np.ndarray) -> None:
    """`WireError` unless each scale is finite and >= 0 (not -0), or the quiet NaN."""
    unsigned = scales.view(f"u{scales.itemsize}")
    nan = np.array([np.nan], scales.dtype).view(unsigned.dtype)
    valid = (np.isfinite(scales) & ~np.signbit(scales)) | (unsigned == nan)
    if not valid.all():
        worker = int(np.argmin(valid.reshape(len(scales), -1).all(axis=1)))
        raise WireError(
            f"message {worker} of the block is not valid: its norm is not finite and >= 0"
        )
