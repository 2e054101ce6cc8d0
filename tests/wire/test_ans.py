"""The codec "entropy": against entropies of sources, and bytes that are refused."""

import hashlib
import math
from math import comb, log2

import numpy as np
import pytest

from mpisim.analysis.card_bits import entropies
from mpisim.compressors import make
from mpisim.testing import DOUBLE, SINGLE
from mpisim.testing.moments import draw
from mpisim.wire.base import Message
from mpisim.wire.codecs import entropy, priors, symbols
from mpisim.wire.levels import Levels, LevelsForm
from tests.helpers import some_of
from tests.trials.messages import check
from tests.wire.messages import received

M = 20
RNG = np.random.default_rng(0)  # starts again with each test: tests/wire/conftest.py
VECTORS = {
    "normal": lambda m, d: RNG.standard_normal((m, d)),
    "of Laplace": lambda m, d: RNG.laplace(size=(m, d)),
    "of Student's t": lambda m, d: RNG.standard_t(3, (m, d)),
    "of t, 2 degrees": lambda m, d: RNG.standard_t(2, (m, d)),
    "with zeros": lambda m, d: RNG.standard_normal((m, d)) * (RNG.random((m, d)) < 0.5),
}


def order_0(codes) -> float:
    """Bits of the empirical entropy of each of ``codes``."""
    counts = np.unique(codes, return_counts=True)[1] / np.size(codes)
    return float(-(counts * np.log2(counts)).sum())


def compressed(table, v) -> Message:
    """The message of ``v`` (m, d) in the codec "entropy"."""
    m, d = v.shape
    return make(table | {"codec": "entropy"}).bind(d, m, SINGLE).compress(v, draw(m))


def symbols_of(message) -> tuple[np.ndarray, int]:
    """What is coded, and the bits of the norm of each message."""
    return (message.levels, 32) if isinstance(message, Levels) else (message.codes, 0)


DENSE = list(VECTORS)[:4]
NATURAL, FEW, MORE = {"name": "natural"}, {"name": "qsgd", "s": 4}, {"name": "qsgd", "s": 100}
TERNARY, NEARLY = {"name": "qsgd", "s": 1}, {"name": "quant-plus", "beta": 30.0}
TABLES = NATURAL, FEW, MORE, TERNARY, NEARLY


@pytest.mark.drawn(8)
@pytest.mark.parametrize(
    ("table", "kind", "d", "above"),
    [
        *[(table, kind, 123, 0.03) for table in TABLES for kind in DENSE],
        *[(table, kind, 1000, 0.01) for table in TABLES for kind in DENSE],
        *[(table, kind, 30_000, 0.003) for table in TABLES[:3] for kind in VECTORS],
        *[(table, "with zeros", 1000, 0.01) for table in (NATURAL, TERNARY, NEARLY)],
        *[(TERNARY, kind, 30_000, 0.004) for kind in VECTORS],
        *[(NEARLY, kind, 30_000, 0.01) for kind in VECTORS],
        (NATURAL, "with zeros", 123, 0.05),
        (FEW, "with zeros", 1000, 0.016),
        (MORE, "with zeros", 1000, 0.02),
    ],
    ids=str,
)
def test_bits_are_near_the_entropy_of_the_source(table, kind, d, above):
    """Which many messages show."""
    message = compressed(table, 1e-3 * VECTORS[kind](max(M, 60_000 // d), d))
    codes, norms = symbols_of(message)
    bits = message.encode().payload_bits.mean()
    assert 0.99 < bits / (norms + d * order_0(codes)) < 1 + above


ROTATED = [{"name": name, "bits": bits} for name in ("eden", "quic-fl") for bits in (1, 2, 4)]


@pytest.mark.drawn(8)
@pytest.mark.parametrize("table", ROTATED, ids=str)
@pytest.mark.parametrize(("d", "above", "beside"), [(128, 0.015, 0.03), (1024, 0.003, 0.01)])
def test_points_are_near_the_entropy(table, d, above, beside):
    """beside : for all that QUIC-FL sends beside the points, too"""
    many = 60_000 // d
    v = VECTORS["of Student's t"](many, d)
    message = compressed(table, v)
    plain = make(table).bind(d, many, SINGLE).compress(v, draw(many))
    assert np.array_equal(message.decoded(), plain.decoded())
    points = message.inner
    if table["name"] == "quic-fl":
        points = points.parts[0]
        every = sum(entropies(message).values())
        assert 1 < message.encode().payload_bits.mean() / every < 1 + beside
    bits = 32 + d * order_0(points.which)
    assert 0.995 < points.encode().payload_bits.mean() / bits < 1 + above


@pytest.mark.parametrize(
    ("name", "d", "k", "above"),
    [
        ("rank-k", 120, 1, 0.022),
        ("rank-k", 1000, 1, 0.01),
        ("rank-k", 10_000, 10, 0.003),
        ("symmetric-rank-k", 120, 1, 0.032),
        ("symmetric-rank-k", 990, 1, 0.012),
        ("symmetric-rank-k", 9870, 10, 0.002),
    ],
)
@some_of(8, kind=DENSE)
def test_factors_are_near_the_entropy(name, kind, d, k, above):
    """Signs, and exponents of both factors by their frequencies in many messages; 23 bits raw."""
    many = max(M, 60_000 // d)
    message = compressed({"name": name, "k": k}, VECTORS[kind](many, d))
    parts = np.split(message.values, [1], axis=-1)
    if name == "rank-k":
        [parts] = message.form.parts(message.values)
    exponents = [part.view(np.uint32).reshape(many, -1) >> 23 & 255 for part in parts]
    bits = sum(part.shape[1] * (24 + order_0(part)) for part in exponents)
    assert 0.999 < message.encode().payload_bits.mean() / bits < 1 + above


def test_divisions_by_frequencies_are_exact():
    rng = np.random.default_rng(0)
    halves = np.unique([3, *2 ** np.arange(1, 21), *rng.integers(2, 1 << 20, 300)])
    start = np.concatenate([[0], np.cumsum(2 * halves)]).astype(np.uint64)
    f, inverses, shifts = np.empty((3, halves.size), np.uint64)
    symbols._invert(start, np.ones(halves.size, np.int64), f, inverses, shifts)
    assert np.array_equal(f, halves)
    for divisor, inverse, shift in zip(*(a.tolist() for a in (f, inverses, shifts)), strict=True):
        quotients = rng.integers(0, 2**63 // divisor, 50).tolist()
        for x in [2**63 - 1, *(q * divisor + r for q in quotients for r in (-1, 0)), divisor - 1]:
            assert x * inverse >> 64 >> shift == x // divisor or x < 0


@pytest.mark.parametrize(
    ("table", "m", "d", "second", "above"),
    [(NATURAL, 1, 100_000, 3, 0.006), (NATURAL, 60, 1000, 5, 0.0145), (MORE, 60, 1000, 5, 0.0145)],
    ids=str,
)
def test_frequencies_follow_where_halves_differ(table, m, d, second, above):
    """As of two layers, or of a layer's rows: near the frequencies of all together.

    A code with frequencies of the coordinates before takes no more than those. But where the second
    half begins it has those of the first for a stretch.
    """
    message = compressed(table, RNG.standard_normal((m, d)) * np.repeat([1, second], d // 2))
    codes, norms = symbols_of(message)
    bits = message.encode().payload_bits.mean() - norms
    assert 1 < bits / (d * order_0(codes)) < 1 + above


LONG = [  # messages as long as it takes for all that heads and stretches may be
    ({"name": "qsgd", "s": 1}, 600, 1.0),
    ({"name": "qsgd", "s": 1}, 600, 1e-4),
    ({"name": "qsgd", "s": 1}, 2500, 1.0),
    ({"name": "qsgd", "s": 1, "norm": "inf"}, 600, 1.0),
    ({"name": "natural"}, 40_000, 1.0),
    ({"name": "natural"}, 2000, (1, 9)),
    ({"name": "qsgd", "s": 200}, 2000, (1, 9)),
]


@pytest.mark.parametrize(("table", "d", "rest"), LONG, ids=str)
def test_long_messages_are_refused_or_encode_to_the_same_bytes(table, d, rest):
    """rest : the size of all entries but a few, or of each half; zeros are not as expected."""
    sizes = np.where(np.arange(d) % 100, np.repeat(rest, d // np.size(rest)), 1)
    message = compressed(table, RNG.standard_normal((1, d)) * sizes)
    assert np.array_equal(received(message).decoded(), message.decoded())
    packed = message.encode()
    for place in [*range(24), *RNG.integers(24, 8 * packed.data.size, 16).tolist()]:
        data = packed.data.copy()
        data[place // 8] ^= 128 >> place % 8
        assert not check(message.form, data, packed.sizes)


def test_all_machines_have_the_same_priors():
    digest = hashlib.sha256()
    for weights, costs in (priors.of_exponents(), *map(priors.of_levels, (2, 4))):
        digest.update(weights.tobytes() + costs.tobytes())
    assert digest.hexdigest().startswith("6e31739c73c6e83c2a74fbd218cfaed51dcb432588e91220")


def test_priors_are_probabilities_of_normal_levels():
    """P(level 0) is E max(0, 1 - |y|), here of y normal with variance 1."""
    weights = priors.of_levels(2)[0][-2 * priors.FINEST]
    assert weights.sum() <= 2**priors.WEIGHT_BITS < weights.sum() + priors.CLASSES
    at_zero, at_one = (math.exp(-y * y / 2) / math.sqrt(2 * math.pi) for y in (0, 1))
    expected = math.erf(math.sqrt(0.5)) - 2 * (at_zero - at_one)
    assert weights[0] / 2**priors.WEIGHT_BITS == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize("precision", [SINGLE, DOUBLE], ids=str)
@pytest.mark.parametrize(("d", "k"), [(1, 1), (40, 1), (40, 40), (123, 12), (20_000, 200)])
@some_of(4, name=["topk", "randk"])
def test_places_take_the_logarithm_of_their_number(name, d, k, precision):
    table = {"name": name, "k": k, "codec": "entropy"}
    table |= {"shared": False} if name == "randk" else {}
    compressor = make(table).bind(d, M, precision)
    message = compressor.compress(RNG.standard_normal((M, d)), draw(M))
    beyond = message.encode().payload_bits - precision.bits * k - log2(comb(d, k))
    assert np.all(beyond > -1e-9) and np.all(beyond < 2 + 0.0003 * log2(comb(d, k)))


def test_the_expected_scale_is_a_row_of_the_table():
    """Also of levels far above and far below all that the table has."""
    assert entropy._scaled(2**31 - 1, 2.0**31, 1)[-1] == priors.SCALES - 1
    assert entropy._scaled(2, 1e-3, 10**9)[-1] == 0


def test_the_bits_of_a_worker_do_not_depend_on_who_shares_its_rank():
    """One has steps as long as its norm, another has a fourth of these."""
    d, rng = 200, np.random.default_rng(0)
    s = np.array([np.full(d, 0.5), np.full(d, 4.0), np.linspace(0.1, 0.9, d)])
    levels = np.array([rng.integers(-1, 2, d), rng.integers(-4, 5, d), rng.integers(-1, 2, d)])
    bits = []
    for rows in ([0, 1, 2], [0], [1], [2]):
        form = LevelsForm(d, len(rows), SINGLE, s[rows], np.array([0, d]), "entropy")
        message = Levels(form, np.ones((len(rows), 1), np.float32), levels[rows].astype(np.int32))
        assert np.array_equal(received(message).levels, levels[rows])
        bits += message.payload_bits.tolist()
    assert bits[:3] == bits[3:]
