"""Layer by layer, and matrices of low rank: against vectors and decompositions of each layer."""

import dataclasses
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from mpisim.compressors import make
from mpisim.compressors.rank import nearly_square
from mpisim.core.errors import InputError
from mpisim.core.numerics.eigen import packed, triangle_size, unpacked
from mpisim.testing.compressor import charged
from tests.compressors.cases import DOUBLE, SINGLE, draw
from tests.compressors.test_battery import like_every_compressor
from tests.helpers import some_of
from tests.wire.messages import contents, received

# a compressor of each layer
EACH = [{"name": name} for name in ("identity", "natural", "permk", "scaled-sign")]
EACH += [{"name": "randk", "k": 0.4}, {"name": "topk", "k": 0.4}, {"name": "qsgd", "s": 3}]
EACH += [{"name": "block-quant", "blocks": 1, "s": 4}]


def by_layer(inner, layers, precision=DOUBLE):
    compressor = make({"name": "layerwise", "inner": inner}).bind(sum(layers), 3, precision)
    compressor.prepare(None, SimpleNamespace(layers=layers))
    return compressor


@pytest.mark.drawn(12)
@pytest.mark.parametrize("inner", EACH, ids=lambda inner: inner["name"])
@pytest.mark.parametrize(
    ("layers", "precision", "m"),
    [((5, 8, 2, 13), SINGLE, 3), ((4, 9), DOUBLE, 3), ((7,), DOUBLE, 0)],
)
def test_every_compressor_layer_by_layer(inner, layers, precision, m):
    compressor, d = by_layer(inner, layers, precision), sum(layers)
    v = np.random.default_rng(0).standard_normal((m, d)).astype(precision.arithmetic)
    message, form = compressor.compress(v, draw(m)), compressor.form(draw(m))
    packed = message.encode()
    assert form.d == d and (form.sizes is None or np.array_equal(form.sizes, packed.sizes))
    received = form.decode(packed.data, packed.sizes)
    assert received.decoded().tobytes() == message.decoded().tobytes()
    start, (payload, paper) = 0, np.zeros((2, m), np.int64)
    for layer, length in enumerate(layers):
        single = make(inner).bind(length, 3, precision)
        part = slice(start, start + length)
        one = dataclasses.replace(draw(m), purpose=f"up/layer {layer}")
        alone = single.compress(v[:, part], one)
        assert received.decoded()[:, part].tobytes() == alone.decoded().tobytes()
        assert received.total()[part].tobytes() == alone.total().tobytes()
        payload, start = payload + alone.payload_bits, part.stop
        paper = paper + single.paper_bits(alone)
    for bits in (received.payload_bits, received.layer_bits().sum(axis=1), packed.payload_bits):
        assert np.array_equal(bits, payload)
    assert np.array_equal(compressor.paper_bits(received), paper)
    rows = v + 1
    received.add_to(rows)
    assert np.array_equal(rows, v + 1 + message.decoded())


def test_a_key_must_fit_the_smallest_layer():
    with pytest.raises(InputError, match=r"compressor\.inner\.k: 5 is not allowed; .* d = 4"):
        by_layer({"name": "topk", "k": 5}, (9, 4))


def test_parts_within_parts_have_sizes_of_their_own():
    quic = {"name": "quic-fl", "bits": 3, "p": 0.2, "codec": "entropy"}
    charged(by_layer(quic, (30, 20)), np.random.default_rng(1).standard_normal((3, 50)))


SHAPES = [((7, 4),), ((4, 7),), ((12, 5), (5, 12)), ((6, 6), (1, 9), (3, 8)), ((1, 5),)]


def rank(k, shapes, n=3, precision=DOUBLE):
    d = sum(a * b for a, b in shapes)
    compressor = make({"name": "rank-k", "k": k}).bind(d, n, precision)
    compressor.prepare(None, SimpleNamespace(shapes=shapes))
    return compressor


def matrices(row, shapes):
    ends = np.cumsum([0] + [a * b for a, b in shapes])
    return [row[s:t].reshape(shape) for (s, t), shape in zip(pairwise(ends), shapes, strict=True)]


def truncated(x, k):
    u, s, vt = np.linalg.svd(x, full_matrices=False)
    return (u[:, :k] * s[:k]) @ vt[:k]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@some_of(6, k=[1, 2, 5])
def test_best_approximations(shapes, k):
    k = min(k, max(min(shape) for shape in shapes))
    compressor = rank(k, shapes)
    v = np.random.default_rng(k).standard_normal((3, compressor.d))
    c = compressor.compress(v, draw(3)).decoded()
    for row, decoded in zip(v, c, strict=True):
        for x, y in zip(matrices(row, shapes), matrices(decoded, shapes), strict=True):
            best = x if min(k, *x.shape) * sum(x.shape) > x.size else truncated(x, k)
            np.testing.assert_allclose(y, best, rtol=1e-9, atol=1e-11)
    errors = ((c - v) ** 2).sum(axis=1) / (v**2).sum(axis=1)
    assert np.all(errors <= 1 - compressor.alpha + 1e-12)


@pytest.mark.parametrize(
    ("shape", "k", "count"),
    [((7, 4), 2, 22), ((7, 4), 3, 28), ((4, 7), 4, 28), ((1, 9), 1, 9), ((2, 2), 1, 4)],
)
@pytest.mark.parametrize("precision", [SINGLE, DOUBLE])
def test_no_message_is_longer_than_the_matrix(shape, k, count, precision):
    """k (a + b) values or, where a b is less, the a b values, without loss: alpha = 1."""
    compressor = rank(k, (shape, shape), precision=precision)
    v = np.random.default_rng(k).standard_normal((3, compressor.d)).astype(np.float32)
    message = compressor.compress(v, draw(3))
    bits = precision.bits * count
    assert message.payload_bits.tolist() == [2 * bits] * 3
    assert message.layer_bits().tolist() == [[bits, bits]] * 3
    assert compressor.paper_bits(message).tolist() == [64 * count] * 3
    assert message.payload_bits.max() <= precision.bits * compressor.density
    assert contents(received(message)) == contents(message)
    if k * sum(shape) > count:
        assert compressor.alpha == 1 and np.array_equal(message.decoded(), v)
    else:
        assert compressor.alpha == k / min(shape)


def test_shapes_without_a_problem_that_has_some():
    assert [nearly_square(d) for d in (7, 36, 25_088)] == [(1, 7), (6, 6), (128, 196)]
    compressor = make({"name": "rank-k", "k": 4}).bind(12, 1, DOUBLE)
    with pytest.raises(InputError, match="4 is not allowed; it must be from 1 to 3 for x as 3 x 4"):
        compressor.prepare(None, SimpleNamespace(shapes=()))


def test_triangles_of_symmetric_matrices():
    """The k eigenvalues largest in absolute value are kept: alpha = k / D, attained by I."""
    D, k = 6, 2
    compressor = make({"name": "symmetric-rank-k", "k": k}).bind(triangle_size(D), 3, DOUBLE)
    a = np.random.default_rng(4).standard_normal((2, D, D))
    X = np.concatenate([a + a.transpose(0, 2, 1), np.eye(D)[None]])
    message = compressor.compress(np.array([packed(x) for x in X]), draw(3))
    assert message.payload_bits.tolist() == [64 * k * (D + 1)] * 3
    assert compressor.paper_bits(message).tolist() == [32 * k * (D + 1)] * 3
    for x, row in zip(X, message.decoded(), strict=True):
        result = unpacked(row, D)
        left = np.sort(np.linalg.eigvalsh(x) ** 2)[: D - k].sum()
        assert np.linalg.matrix_rank(result) <= k
        assert np.sum((result - x) ** 2) == pytest.approx(left, rel=1e-12)
    assert compressor.alpha == pytest.approx(k / D) == 1 - left / D


@pytest.mark.parametrize("codec", ["paper", "entropy"])
def test_symmetric_matrices_like_every_compressor(codec):
    table = {"name": "symmetric-rank-k", "k": 2, "codec": codec}
    like_every_compressor(make(table).bind(triangle_size(6), 7, SINGLE))
