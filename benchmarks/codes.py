"""Nanoseconds a coordinate of the codec "entropy", against a copy of as many float64."""

from __future__ import annotations

import sys

import numpy as np

from benchmarks.common import result, seconds, write
from mpisim.compressors import make
from mpisim.testing import SINGLE
from mpisim.testing.moments import draw

SIZES = ((100_000, 1), (1000, 100), (123, 800))  # d, and messages at once
TABLES = {
    "natural": {"name": "natural"},
    "ternary": {"name": "qsgd", "s": 1},
    "QSGD, s = 7, inf": {"name": "qsgd", "s": 7, "norm": "inf"},
    "TopK, K = d / 10": {"name": "topk", "k": 0.1},
}


def main(path: str) -> None:
    """Two rows for each compressor and size; from d = 100,000 on with a bound."""
    rows = []
    for d, m in SIZES:
        v = np.random.default_rng(0).standard_normal((m, d))
        space, each = np.empty_like(v), 1e9 / (m * d)
        copy = seconds(lambda v=v, space=space: np.copyto(space, v), 100) * each  # type: ignore[misc]
        for name, table in TABLES.items():
            compressor = make(table | {"codec": "entropy"}).bind(d, m, SINGLE)
            message = compressor.compress(v, draw(m))
            data, sizes = (packed := message.encode()).data, packed.sizes
            encode = seconds(message.encode, 20) * each
            decode = seconds(lambda: message.form.decode(data, sizes), 20) * each  # noqa: B023
            for what, time, limit in (("encode", encode, 90), ("decode", decode, 60)):
                bound = f"<= {limit}" if d == SIZES[0][0] else ""
                label = f"entropy code, {what} a coordinate, {name}, d = {d} / copy"
                rows.append(result(label, time, copy, "ns", bound))
    write(rows, path)


if __name__ == "__main__":
    main(sys.argv[1])
