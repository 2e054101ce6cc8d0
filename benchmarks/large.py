"""Compressing d = 11 million numbers, the size of ResNet-18: packing signs, a round's messages.

Packing signs: against one bare pass that reads every number (NumPy's sum). Messages of the scaled
sign and of TopK with K = 0.016 d (CD-Adam's experiments), from vector to vector: against
ResNet-18's gradient of a minibatch, if PyTorch is installed. The paper's minibatch has 128 images;
32 are a tighter bound.
"""

from __future__ import annotations

import sys

import numpy as np

from benchmarks.common import result, seconds, turns, write
from mpisim.compressors import make
from mpisim.core.errors import InputError
from mpisim.core.rng import Draw, Streams
from mpisim.runs.experiment import parse
from mpisim.wire.base import Precision
from mpisim.wire.signs import SignsForm

D, BATCH = 11_000_000, 32
MESSAGES = {"scaled-sign": {}, "topk": {"k": 0.016}}


def vector(dtype: str) -> np.ndarray:
    """One worker's vector, shape (1, D)."""
    return np.random.default_rng(0).normal(size=(1, D)).astype(dtype)


def packing(dtype: str) -> dict:
    """The row of packing signs."""
    v, precision = vector(dtype), Precision(np.dtype("f4"), np.dtype(dtype))
    form, scales = SignsForm(D, 1, precision), np.ones(1, np.float32)
    pack, bare = turns(lambda: seconds(lambda: form.pack(scales, v), 5), lambda: seconds(v.sum, 5))
    what = f"packing the signs of 1.1e7 {dtype} / a bare pass"
    return result(what, pack / 1e3, bare / 1e3, "ms", "<= 2")


def message_seconds(name: str) -> float:
    """Seconds to compress and encode v, and to decode it and add it up."""
    v, precision = vector("float32"), Precision(np.dtype("f4"), np.dtype("f4"))
    compressor = make({"name": name} | MESSAGES[name]).bind(D, 1, precision)
    draw = Draw(Streams(1), "up", 0, 0, 1)

    def message() -> None:
        packed = compressor.compress(v, draw).encode()
        compressor.form(draw).decode(packed.data, packed.sizes).total()

    return seconds(message, 5)


def gradient_seconds() -> float | None:
    """ResNet-18's gradient of a minibatch on one thread; None without PyTorch."""
    tables = {
        "problem": {"name": "torch", "data": "generated", "workers": 1, "device": "cpu"},
        "method": {"name": "gd", "stepsize": 0.1},
        "run": {"rounds": 1},
    }
    try:
        problem = parse(tables).problem.loaded(1, 0, 1, 1, np.dtype("f4"))
    except InputError as error:
        print(f"skipped, messages against a gradient: {error}")
        return None
    x, batch = problem.initial_point(), np.arange(BATCH)[None]
    return seconds(lambda: problem.batch_gradients(x, batch), 2)


def main(path: str) -> None:
    """All rows."""
    rows = [packing("float32"), packing("float64")]
    gradient = gradient_seconds()
    for name in MESSAGES if gradient else ():
        assert gradient is not None
        what = f"{name} message, d = 1.1e7 / ResNet-18's gradient of {BATCH} images"
        rows.append(result(what, 1e3 * message_seconds(name), 1e3 * gradient, "ms", "<= 0.1"))
    write(rows, path)


if __name__ == "__main__":
    main(sys.argv[1])
