"""Messages in Elias omega codes against a plain Python string coder: QSGD of a Gaussian vector."""

from __future__ import annotations

import sys
from math import isqrt

import numpy as np

from benchmarks.common import result, seconds, write
from mpisim.wire import Levels, LevelsForm, Precision
from tests.wire import string_elias

D = 100_000
WHAT = "Elias omega, {} 1e5 levels / a Python string coder"


def message(d: int) -> Levels:
    """QSGD with s = sqrt(d) of a Gaussian vector; about half of the levels are zero."""
    random = np.random.default_rng(0)
    v = random.normal(size=d)
    sizes = np.floor(isqrt(d) * np.abs(v) / np.linalg.norm(v) + random.uniform(size=d))
    levels = (np.sign(v) * sizes).astype(np.int32)[None]
    precision = Precision(np.dtype("float32"), np.dtype("float64"))
    return Levels(LevelsForm.uniform(d, 1, precision, isqrt(d)), np.ones((1, 1), "f4"), levels)


def main(path: str) -> None:
    """Encode and decode with both."""
    sent = message(D)
    packed, plain = sent.encode(), sent.levels[0].tolist()
    text = string_elias.triples(plain)
    assert len(text) == packed.payload_bits[0] - 32
    assert np.array_equal(sent.form.decode(packed.data, packed.sizes).levels, sent.levels)
    assert string_elias.levels(text, D) == plain
    encode = seconds(sent.encode, 200) * 1e3
    decode = seconds(lambda: sent.form.decode(packed.data, packed.sizes), 200) * 1e3
    slow_encode = seconds(lambda: string_elias.triples(plain), 3) * 1e3
    slow_decode = seconds(lambda: string_elias.levels(text, D), 3) * 1e3
    rows = [
        result(WHAT.format("encode"), encode, slow_encode, "ms", ">= 60", True),
        result(WHAT.format("decode"), decode, slow_decode, "ms", ">= 30", True),
    ]
    write(rows, path)


if __name__ == "__main__":
    main(sys.argv[1])
