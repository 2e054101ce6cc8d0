"""Compressing d = 11 million numbers, as many as ResNet-18 has: packing signs, a round's messages.

Packing signs: against one bare pass that reads every number (NumPy's sum), in turns.
"""

from __future__ import annotations

import statistics
import sys

import numpy as np

from benchmarks.common import result, seconds, write
from mpisim.wire.base import Precision
from mpisim.wire.signs import SignsForm

D, TURNS = 11_000_000, 5


def vector(dtype: str) -> np.ndarray:
    """One worker's vector, shape (1, D)."""
    return np.random.default_rng(0).normal(size=(1, D)).astype(dtype)


def packing(dtype: str) -> dict:
    """The row of packing signs."""
    v, precision = vector(dtype), Precision(np.dtype("f4"), np.dtype(dtype))
    form, scales = SignsForm(D, 1, precision), np.ones(1, np.float32)
    times = [
        (seconds(lambda: form.pack(scales, v), 5), seconds(lambda: v.sum(), 5))
        for _ in range(TURNS)
    ]
    pack, bare = (1e3 * statistics.median(column) for column in zip(*times, strict=True))
    return result(f"packing the signs of 1.1e7 {dtype} / a bare pass", pack, bare, "ms", "<= 2")


def main(path: str) -> None:
    """All rows."""
    write([packing("float32"), packing("float64")], path)


if __name__ == "__main__":
    main(sys.argv[1])
