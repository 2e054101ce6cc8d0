"""The codec "entropy" of exponents and places: against entropies, and bytes that are refused."""

from __future__ import annotations

from math import comb, log2

import numpy as np
import pytest

from mpisim.compressors import make
from mpisim.core.errors import WireError
from mpisim.testing import DOUBLE, SINGLE
from mpisim.testing.moments import draw
from mpisim.wire.exponents import Exponents

M = 20
RNG = np.random.default_rng(0)
VECTORS = {
    "normal": lambda d: RNG.standard_normal((M, d)),
    "of Student's t": lambda d: RNG.standard_t(3, (M, d)),
    "with zeros": lambda d: RNG.standard_normal((M, d)) * (RNG.random((M, d)) < 0.5),
}


def order_0(codes) -> float:
    """Bits of the empirical entropy of a row."""
    counts = np.unique(codes, return_counts=True)[1]
    return float(-(counts * np.log2(counts / counts.sum())).sum())


@pytest.mark.parametrize(("d", "above"), [(123, 0.14), (1000, 0.03), (100_000, 0.006)])
@pytest.mark.parametrize("kind", VECTORS)
def test_natural_is_near_the_entropy(kind, d, above):
    compressor = make({"name": "natural", "codec": "entropy"}).bind(d, M, SINGLE)
    message = compressor.compress(1e-3 * VECTORS[kind](d), draw(M))
    entropy = sum(order_0(row) for row in message.codes)
    bits = message.encode().payload_bits.sum()
    assert 0.99 * entropy < bits < (1 + above) * entropy


@pytest.mark.parametrize("precision", [SINGLE, DOUBLE], ids=str)
@pytest.mark.parametrize(("d", "k"), [(1, 1), (40, 1), (40, 40), (123, 12), (20_000, 200)])
def test_places_take_the_logarithm_of_their_number(d, k, precision):
    compressor = make({"name": "topk", "k": k, "codec": "entropy"}).bind(d, M, precision)
    message = compressor.compress(RNG.standard_normal((M, d)), draw(M))
    beyond = message.encode().payload_bits - precision.bits * k - log2(comb(d, k))
    assert np.all(beyond > -1e-9) and np.all(beyond < 2 + 0.0003 * log2(comb(d, k)))


@pytest.mark.parametrize("d", [1, 16, 123, 4000])
def test_every_code_crosses(d):
    """Also codes of all sizes, in any mixture, zeros and NaN."""
    form = make({"name": "natural", "codec": "entropy"}).bind(d, 3, SINGLE).form(draw(3))
    codes = RNG.integers(0, 512, (3, d), np.uint16)
    codes[1], codes[2, ::2] = 0, 256
    packed = Exponents(form, codes).encode()
    assert np.array_equal(form.decode(packed.data, packed.sizes).codes, codes)


def test_another_median_is_refused():
    """The bits decode, but the sender would not have written them."""
    compressor = make({"name": "natural", "codec": "entropy"}).bind(1, 1, SINGLE)
    packed = compressor.compress(np.ones((1, 1)), draw(1)).encode()
    refused = 0
    for bit in range(8 * packed.data.size):
        data = packed.data.copy()
        data[bit // 8] ^= 128 >> bit % 8
        form = compressor.form(draw(1))
        try:
            again = form.decode(data, packed.sizes).encode()
        except WireError:
            refused += 1
        else:
            assert again.data.tobytes() == data.tobytes()
    assert refused > 4
