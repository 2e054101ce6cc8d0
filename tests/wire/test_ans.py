"""The codec "entropy": against entropies of sources, and bytes that are refused."""

import hashlib
import math
from math import comb, log2

import numpy as np
import pytest

from mpisim.compressors import make
from mpisim.testing import DOUBLE, SINGLE
from mpisim.testing.moments import draw
from mpisim.wire.codecs import priors

M = 20
RNG = np.random.default_rng(0)
VECTORS = {
    "normal": lambda m, d: RNG.standard_normal((m, d)),
    "of Laplace": lambda m, d: RNG.laplace(size=(m, d)),
    "of Student's t": lambda m, d: RNG.standard_t(3, (m, d)),
    "with zeros": lambda m, d: RNG.standard_normal((m, d)) * (RNG.random((m, d)) < 0.5),
}


def order_0(codes) -> float:
    """Bits of the empirical entropy of each of ``codes``."""
    counts = np.unique(codes, return_counts=True)[1] / np.size(codes)
    return float(-(counts * np.log2(counts)).sum())


def bits_above_source(table, kind, d) -> float:
    """Payload over the entropy of the source, which many messages show, and the norms."""
    many = max(M, 60_000 // d)
    compressor = make(table | {"codec": "entropy"}).bind(d, many, SINGLE)
    message = compressor.compress(1e-3 * VECTORS[kind](many, d), draw(many))
    if table["name"] == "natural":
        symbols, norms = message.codes, 0
    else:
        symbols, norms = message.levels, 32
    return message.encode().payload_bits.mean() / (norms + d * order_0(symbols))


NATURAL, FEW, MORE = {"name": "natural"}, {"name": "qsgd", "s": 4}, {"name": "qsgd", "s": 100}


@pytest.mark.drawn(8)
@pytest.mark.parametrize(
    ("table", "kind", "d", "above"),
    [
        (NATURAL, "normal", 123, 0.045),
        (NATURAL, "of Laplace", 123, 0.045),
        (NATURAL, "of Student's t", 123, 0.045),
        (NATURAL, "with zeros", 123, 0.065),
        *[(NATURAL, kind, 1000, 0.01) for kind in VECTORS],
        *[(NATURAL, kind, 30_000, 0.002) for kind in VECTORS],
        (FEW, "normal", 123, 0.032),
        (FEW, "normal", 1000, 0.012),
        (FEW, "with zeros", 1000, 0.015),
        (FEW, "normal", 30_000, 0.006),
        (MORE, "normal", 123, 0.032),
        (MORE, "normal", 1000, 0.01),
        (MORE, "of Laplace", 1000, 0.01),
        (MORE, "normal", 30_000, 0.003),
        ({"name": "qsgd", "s": 1}, "normal", 1000, 0.03),
    ],
    ids=str,
)
def test_bits_are_near_the_entropy_of_the_source(table, kind, d, above):
    assert 0.995 < bits_above_source(table, kind, d) < 1 + above


def test_all_machines_have_the_same_priors():
    digest = hashlib.sha256()
    for weights, costs in (priors.of_exponents(), *map(priors.of_levels, (1, 2, 4))):
        digest.update(weights.tobytes() + costs.tobytes())
    assert digest.hexdigest() == (
        "2ff80bf3b5c104158c0a04af8081d91cd7f9e131ecb1732a74a777e6f5b858fc"
    )


def test_priors_are_probabilities_of_normal_levels():
    """P(level 0) is E max(0, 1 - |y|), here of y normal with variance 1."""
    weights = priors.of_levels(1)[0][-priors.FINEST]
    assert weights.sum() <= 2**priors.WEIGHT_BITS < weights.sum() + priors.CLASSES
    at_zero, at_one = (math.exp(-y * y / 2) / math.sqrt(2 * math.pi) for y in (0, 1))
    expected = math.erf(math.sqrt(0.5)) - 2 * (at_zero - at_one)
    assert weights[0] / 2**priors.WEIGHT_BITS == pytest.approx(expected, abs=2e-4)


@pytest.mark.drawn(8)
@pytest.mark.parametrize("precision", [SINGLE, DOUBLE], ids=str)
@pytest.mark.parametrize(("d", "k"), [(1, 1), (40, 1), (40, 40), (123, 12), (20_000, 200)])
@pytest.mark.parametrize("name", ["topk", "randk"])
def test_places_take_the_logarithm_of_their_number(name, d, k, precision):
    table = {"name": name, "k": k, "codec": "entropy"}
    table |= {"shared": False} if name == "randk" else {}
    compressor = make(table).bind(d, M, precision)
    message = compressor.compress(RNG.standard_normal((M, d)), draw(M))
    beyond = message.encode().payload_bits - precision.bits * k - log2(comb(d, k))
    assert np.all(beyond > -1e-9) and np.all(beyond < 2 + 0.0003 * log2(comb(d, k)))
