"""What the battery needs of each compressor: one row each. A new compressor adds a row."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from itertools import product
from math import ceil, comb, log2

import numpy as np

from mpisim.compressors import Compressor, make
from mpisim.core.rng import Draw, Streams
from mpisim.testing import DOUBLE, SINGLE
from mpisim.testing.moments import draw
from mpisim.wire.base import Message, Precision
from tests.wire import string_elias

__all__ = ["CASES", "DOUBLE", "SINGLE", "Case", "Chosen", "chosen", "draw", "name_of", "roundings"]


@dataclasses.dataclass(frozen=True)
class Case:
    """A compressor's table, and an independent count of one worker's payload bits from its decoded
    vector, the bits of a value ``b`` and the message.

    charged : the bits its paper charges, likewise; as many as those of float32 if it is None
    """

    table: dict
    payload: Callable[[np.ndarray, int, Message, int], int]
    charged: Callable[[np.ndarray, int, Message, int], int] | None = None

    def paper(self, x: np.ndarray, b: int, message: Message, i: int) -> int:
        return self.charged(x, b, message, i) if self.charged else self.payload(x, 32, message, i)

    def bind(self, d: int, n: int = 40, precision: Precision = SINGLE) -> Compressor:
        return make(self.table).bind(d, n, precision)


def _index_bits(row, d):
    """The shorter of the two codes of these indices."""
    return min(len(row) * ceil(log2(d)), len(string_elias.encode(string_elias.gaps(row))))


def _row(message, i):
    """The coordinates that worker i sends."""
    indices = message.indices
    return indices[i] if indices.ndim == 2 else indices[message.ptr[i] : message.ptr[i + 1]]


def _topk_bits(x, b, message, i, head=0):
    row = _row(message, i)
    return head + b * row.size + _index_bits(row, x.size)


def _topk_entropy_bits(x, b, message, i, counted=False):
    """A one, the values, and log2 C(d, k) to within a bit: the count is that of the message.

    counted : k differs, and comes first, as a word of Elias gamma
    """
    k, bits = _row(message, i).size, int(message.payload_bits[i])
    gamma = 2 * (k + 1).bit_length() - 1 if counted else 0
    assert abs(bits - gamma - b * k - log2(comb(x.size, k))) < 2
    return bits


def _toplek_paper_bits(x, b, message, i):
    return 32 * _row(message, i).size


def _inner_qsgd_bits(x, b, message, i):
    for stratum, part in zip(message.form.strata, message.messages, strict=True):
        if i in stratum.rows:
            row = part.levels[np.flatnonzero(stratum.rows == i)[0]]
            return b + len(string_elias.triples(row))
    return 0


def _seeded_bits(x, b, message, i):
    return b * int(np.diff(message.form.ptr)[i])


def _block_bits(x, b, message, i):
    return message.form.norms * b + len(string_elias.triples(message.levels[i]))


def _factor_bits(x, b, *_):
    a = next(a for a in range(int(x.size**0.5), 0, -1) if x.size % a == 0)
    return b * min(a + x.size // a, x.size)


def _coded_bits(most):
    """A count that follows from no formula: the message's, at most ``most(d, b)``."""

    def payload(x, b, message, i):
        bits = int(message.payload_bits[i])
        assert bits <= most(x.size, b)
        return bits

    return payload


_levels_bits = _coded_bits(lambda d, b: 60 + b + 16 * d)


def _levels_paper_bits(x, b, message, i):
    return int(message.payload_bits[i]) - message.form.precision.bits + 32


def power_of_two(d):
    return 2 ** ceil(log2(d))


def _natural_bits(x, *_):
    return 9 * x.size


def _eden_bits(x, b, *_):
    return b + 3 * power_of_two(x.size)


def _quic_bits(x, b, message, i, bits=2):
    """A scale, digits, how many are exact, and these in the shorter of the codes of indices."""
    D, rest = power_of_two(x.size), message.inner.parts[1]
    row = _row(rest, i)
    return b + bits * D + rest.form.k.bit_length() + _index_bits(row, D) + b * row.size


def _quic_paper_bits(x, b, message, i, bits=2):
    D, row = power_of_two(x.size), _row(message.inner.parts[1], i)
    return 32 + bits * D + row.size * (32 + ceil(log2(D)))


NATURAL, PERMK, RANDK = {"name": "natural"}, {"name": "permk"}, {"name": "randk", "k": 3}
BERNOULLI, QSGD = {"name": "bernoulli", "p": 0.95}, {"name": "qsgd", "s": 4, "norm": "inf"}


def composed(outer: dict, inner: dict) -> dict:
    return {"name": "compose", "outer": outer, "inner": inner}


def _block_bits_inside(x, b, message, i):
    inner = message.inner if hasattr(message, "inner") else message.parts[0]
    return _block_bits(x, b, inner, i)


BY_COUNT = [  # counts of bits, and the tables that have them
    (lambda x, b, *_: b * x.size, [{"name": "identity"}]),
    (lambda x, b, *_: 3 * b, [RANDK, {"name": "randseqk", "k": 3}]),
    (
        _seeded_bits,
        [
            *(PERMK, PERMK | {"groups": 3}, {"name": "block-permutation", "blocks": 2}),
            *({"name": "pattern", "s": s} for s in (2, 3)),
            *(composed(PERMK, BERNOULLI), composed(BERNOULLI, RANDK)),
            composed(RANDK, BERNOULLI),
        ],
    ),
    (
        lambda x, b, message, i: 9 * int(message.form.kept.counts[i]),
        [composed(outer, NATURAL) for outer in (PERMK, BERNOULLI)],
    ),
    (_inner_qsgd_bits, [composed(o, {"name": "qsgd", "s": 99}) for o in (PERMK, RANDK)]),
    (lambda x, b, *_: b * x.size if np.any(x) else 0, [{"name": "bernoulli", "p": 0.6}]),
    (
        _block_bits,
        [
            *({"name": "qsgd", "s": s, "norm": n} for s, n in ((1, "2"), (4, "inf"), (250, "2"))),
            {"name": "block-quant", "blocks": 3, "s": 4},
            {"name": "block-quant-plus", "blocks": 2, "beta": 20.0, "norm": "inf"},
            {"name": "block-quant-plus", "blocks": 3, "beta": 20.0, "steps": "fixed"},
            {"name": "quant-plus", "beta": 7.0},
            {"name": "quant-plus", "beta": 70.5, "steps": "fixed"},
        ],
    ),
    (_factor_bits, [{"name": "rank-k", "k": 1}]),
    (_natural_bits, [NATURAL, {"name": "layerwise", "inner": NATURAL}]),
    (
        lambda x, b, *_: b + power_of_two(x.size),
        [{"name": "drive", "scale": scale} for scale in ("least", "unbiased")],
    ),
    (_eden_bits, [{"name": "eden", "bits": 3}]),
    (
        lambda x, b, *_: b + 3,
        [{"name": "spherical", "bits": 3, "scale": scale} for scale in ("unbiased", "least")],
    ),
    (lambda x, *_: 9 * power_of_two(x.size), [{"name": "rotated", "inner": NATURAL}]),
    (_block_bits_inside, [{"name": name, "inner": QSGD} for name in ("rotated", "layerwise")]),
    (lambda x, b, *_: b + x.size, [{"name": "scaled-sign"}]),
]
CASES = [Case(table, count) for count, tables in BY_COUNT for table in tables]
THREE = lambda *_: 96  # noqa: E731 - K = 3 values of float32
CASES += [
    Case({"name": "topk", "k": 3}, _topk_bits, THREE),
    Case({"name": "topk", "k": 3, "codec": "entropy"}, _topk_entropy_bits, THREE),
    Case({"name": "topk", "k": 3, "index_bits": 32}, _topk_bits, lambda *_: 192),
    Case(RANDK | {"shared": False}, _topk_bits, THREE),
    Case(RANDK | {"shared": False, "codec": "entropy"}, _topk_entropy_bits, THREE),
    # two bits say how many coordinates there are, at most 3
    Case({"name": "toplek", "k": 3}, partial(_topk_bits, head=2), _toplek_paper_bits),
    Case(
        {"name": "toplek", "k": 3, "codec": "entropy"},
        partial(_topk_entropy_bits, counted=True),
        _toplek_paper_bits,
    ),
    Case({"name": "rand-tau", "tau": 2.875}, _seeded_bits, lambda *_: 92),
    Case({"name": "rand-tau-plus", "tau": 2.875}, _seeded_bits, lambda *_: 92),
]
ENTROPY = {"codec": "entropy"}
LEVELS = [{"name": "qsgd", "s": 1}, {"name": "qsgd", "s": 250}, {"name": "quant-plus", "beta": 7.0}]
LEVELS += [{"name": "sparse-dithering", "nu": 0.3}]
SIGN = {"name": "scaled-sign", "scale": "one"}
QUIC = {"name": "quic-fl", "bits": 3, "p": 0.2} | ENTROPY
FACTORS = _coded_bits(lambda d, b: 60 + b * 2 * d)
POINTS = _coded_bits(lambda d, b: 60 + b + 5 * power_of_two(d))
DIGITS = _coded_bits(lambda d, b: 60 + (2 * b + 5) * power_of_two(d))
CASES += [Case(table | ENTROPY, _levels_bits, _levels_paper_bits) for table in LEVELS]
CASES += [
    Case({"name": "rank-k", "k": 1} | ENTROPY, FACTORS, lambda x, *_: _factor_bits(x, 32)),
    Case({"name": "quic-fl", "bits": 2}, _quic_bits, _quic_paper_bits),
    Case(QUIC, DIGITS, partial(_quic_paper_bits, bits=3)),
    Case({"name": "eden", "bits": 3} | ENTROPY, POINTS, lambda x, *_: _eden_bits(x, 32)),
    Case(NATURAL | ENTROPY, _coded_bits(lambda d, b: 60 + 9 * d), _natural_bits),
    Case(SIGN, lambda x, b, *_: b + x.size, lambda x, *_: x.size),
]


def name_of(table: dict) -> str:
    return "-".join(str(value) for value in table.values())


@dataclasses.dataclass(eq=False)
class Chosen(Draw):
    """A draw whose outcome the test chooses.

    chosen : words or subsets of the workers, shape (workers, count)
    shared : words of each group, shape (groups, count)
    """

    chosen: np.ndarray = dataclasses.field(default_factory=lambda: np.empty(0))
    shared: np.ndarray = dataclasses.field(default_factory=lambda: np.empty(0))

    def words(self, count: int) -> np.ndarray:
        return self.chosen[self.members, :count]

    def subsets(self, d: int, k: int) -> np.ndarray:
        return self.chosen

    def group_words(self, groups: int, count: int, repetition: int = 0) -> np.ndarray:
        assert self.shared.shape == (groups, count) and repetition == 0
        return self.shared


def chosen(rows) -> Chosen:
    rows = np.array(rows)
    return Chosen(Streams(0), "up", 0, 0, len(rows), chosen=rows)


DOWN, UP = 2**64 - 1, 0  # a uniform of almost 1 never rounds up, 0 does unless exact


def roundings(compressor: Compressor, v: np.ndarray, up: np.ndarray) -> tuple[np.ndarray, ...]:
    """C(v) for every way of rounding each coordinate, worker i way i, and the probabilities.

    up : that of going up, of each coordinate
    """
    ways = np.array(list(product([False, True], repeat=v.size)))
    weights = np.prod(np.where(ways, up, 1 - up), axis=1)
    words = np.where(ways, np.uint64(UP), np.uint64(DOWN))
    return compressor.compress(np.tile(v, (len(ways), 1)), chosen(words)).decoded(), weights
