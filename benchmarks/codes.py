"""The codec "entropy": its bits against the entropy, its nanoseconds against a copy of float64."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from benchmarks.common import result, seconds, write
from mpisim.analysis.card_bits import entropies
from mpisim.compressors import make
from mpisim.testing import SINGLE
from mpisim.testing.moments import draw
from mpisim.wire.base import Message

SIZES = ((100_000, 1), (1000, 100), (123, 800))  # d, and messages at once
TABLES: dict[str, dict[str, Any]] = {
    "natural": {"name": "natural"},
    "ternary": {"name": "qsgd", "s": 1},
    "QSGD, s = 7, inf": {"name": "qsgd", "s": 7, "norm": "inf"},
    "TopK, K = d / 10": {"name": "topk", "k": 0.1},
}
VECTORS = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "Laplace": lambda rng, shape: rng.laplace(size=shape),
    "t, 2 degrees": lambda rng, shape: rng.standard_t(2, shape),
}


def compressed(table: dict, v: np.ndarray) -> Message:
    """The messages of vectors ``v`` (m, d)."""
    m, d = v.shape
    return make(table | {"codec": "entropy"}).bind(d, m, SINGLE).compress(v, draw(m))


def bits_rows(d: int, m: int) -> list[dict]:
    """Bits a coordinate against the entropy of the frequencies in all messages together."""
    rows, limit = [], 1.03 if d < 1000 else 1.01
    for kind, vectors in VECTORS.items():
        v = vectors(np.random.default_rng(0), (m, d))
        for name, table in TABLES.items():
            message = compressed(table, v)
            bits, ideal = message.encode().payload_bits.mean(), sum(entropies(message).values())
            label = f"entropy code, bits a coordinate, {name}, {kind}, d = {d} / entropy"
            rows.append(result(label, bits / d, ideal / d, "bits", f"<= {limit}"))
    return rows


def time_rows(d: int, m: int) -> list[dict]:
    """Encoding and decoding; from d = 100,000 on with a bound."""
    v = np.random.default_rng(0).standard_normal((m, d))
    space, each, rows = np.empty_like(v), 1e9 / (m * d), []
    copy = seconds(lambda: np.copyto(space, v), 100) * each
    for name, table in TABLES.items():
        message = compressed(table, v)
        data, sizes = (packed := message.encode()).data, packed.sizes
        encode = seconds(message.encode, 20) * each
        decode = seconds(lambda: message.form.decode(data, sizes), 20) * each  # noqa: B023
        for what, time, limit in (("encode", encode, 90), ("decode", decode, 60)):
            bound = f"<= {limit}" if d == SIZES[0][0] else ""
            label = f"entropy code, {what} a coordinate, {name}, d = {d} / copy"
            rows.append(result(label, time, copy, "ns", bound))
    return rows


def main(path: str) -> None:
    """The rows of each size."""
    write([row for size in SIZES for row in (*bits_rows(*size), *time_rows(*size))], path)


if __name__ == "__main__":
    main(sys.argv[1])
