"""Elias omega against a plain Python string coder, on QSGD levels of a Gaussian vector."""

from __future__ import annotations

import sys
from math import isqrt

import numpy as np

from benchmarks.common import result, seconds, write
from mpisim.wire.codecs.omega import omega_decode, omega_encode
from tests.wire import string_elias

D = 100_000


def levels(d: int) -> np.ndarray:
    """Levels + 1 of QSGD with s = sqrt(d) on a Gaussian vector: integers >= 1, shape (d,)."""
    random = np.random.default_rng(0)
    v = np.abs(random.normal(size=d))
    return np.floor(isqrt(d) * v / np.linalg.norm(v) + random.uniform(size=d)).astype(np.int64) + 1


def main(path: str) -> None:
    """Encode and decode with both."""
    values = levels(D)
    data, bits = omega_encode(values)
    text = string_elias.encode(values.tolist())
    assert len(text) == bits
    assert np.array_equal(omega_decode(data, bits, D), values)
    assert string_elias.decode(text, D) == values.tolist()
    encode = seconds(lambda: omega_encode(values), 200) * 1e3
    decode = seconds(lambda: omega_decode(data, bits, D), 200) * 1e3
    plain = values.tolist()
    slow_encode = seconds(lambda: string_elias.encode(plain), 3) * 1e3
    slow_decode = seconds(lambda: string_elias.decode(text, D), 3) * 1e3
    write(
        [
            result(
                "Elias omega, encode 1e5 levels / a Python string coder",
                encode,
                slow_encode,
                "ms",
                ">= 60",
                True,
            ),
            result(
                "Elias omega, decode 1e5 levels / a Python string coder",
                decode,
                slow_decode,
                "ms",
                ">= 30",
                True,
            ),
        ],
        path,
    )


if __name__ == "__main__":
    main(sys.argv[1])
