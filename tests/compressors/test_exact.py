"""Moments by enumerating every outcome of the random draw, and the deterministic maps."""

from itertools import combinations, pairwise, product
from math import comb, sqrt

import numpy as np
import pytest
from scipy.linalg import hadamard as matrix

from mpisim.compressors import make
from mpisim.compressors.norms import block_norms
from mpisim.compressors.rotation import normal_points
from mpisim.wire.composed import RotatedForm, hadamard
from tests.compressors.cases import DOUBLE, DOWN, SINGLE, UP, chosen, draw, roundings
from tests.methods.loops import top
from tests.wire.messages import received


def variance(c, v, weights=None):
    return np.average(((c - v) ** 2).sum(axis=1), weights=weights) / (v**2).sum()


@pytest.mark.parametrize(("d", "k"), [(1, 1), (5, 1), (5, 2), (6, 4), (4, 4)])
def test_randk_over_all_subsets(d, k):
    v = np.random.default_rng(d).standard_normal(d)
    compressor = make({"name": "randk", "k": k}).bind(d, 1, DOUBLE)
    outcomes = chosen(list(combinations(range(d), k)))
    c = compressor.compress(np.tile(v, (outcomes.workers, 1)), outcomes).decoded()
    assert len(c) == comb(d, k)
    np.testing.assert_allclose(c.mean(axis=0), v, rtol=1e-13)
    assert variance(c, v) == pytest.approx(compressor.omega, abs=1e-12)
    assert compressor.omega == d / k - 1 and compressor.density == k


def worst_for_the_infinity_norm(d, s):
    w = (sqrt(1 + (d - 1) / s**2) - 1) / 2
    return np.array([1.0] + [1 / (2 * (1 + w) * s)] * (d - 1))


RNG = np.random.default_rng(1)
VECTORS = [RNG.standard_normal(6) * np.exp(2 * RNG.standard_normal(6)) for _ in range(4)]
VECTORS += [np.array([0.0, -2.0, 0.0]), np.full(6, 1 / 3), worst_for_the_infinity_norm(6, 1)]


@pytest.mark.parametrize("norm", ["2", "inf"])
@pytest.mark.parametrize(
    "table",
    [
        *({"name": "qsgd", "s": s} for s in (1, 2, 5, 300)),
        {"name": "block-quant", "blocks": 2, "s": 1},
        {"name": "block-quant-plus", "blocks": 2, "beta": 9.0},
        {"name": "quant-plus", "beta": 2.5},
        {"name": "quant-plus", "beta": 9.0, "steps": "fixed"},
    ],
    ids=lambda table: "-".join(map(str, table.values())),
)
def test_steps_over_all_roundings(table, norm):
    """Unbiased, and the Euclidean norm's omega holds for both; the norms are those of blocks."""
    for v in VECTORS:
        starts = [0, v.size // 2, v.size] if table.get("blocks") == 2 else [0, v.size]
        order = 2 if norm == "2" else np.inf
        parts = [v[a:b] for a, b in pairwise(starts)]
        norms = np.concatenate([np.full(p.size, np.linalg.norm(p, order)) for p in parts])
        compressor = make(table | {"norm": norm}).bind(v.size, 1, DOUBLE)
        s = compressor.form(draw(1)).s_by_worker[0] * np.ones(v.size)
        y = np.divide(np.abs(v) * s, norms, out=np.zeros(v.size), where=norms > 0)
        c, weights = roundings(compressor, v, y - np.floor(y))
        np.testing.assert_allclose(weights @ c, v, rtol=1e-9, atol=1e-12)
        assert variance(c, v, weights) <= compressor.omega + 1e-12
        assert weights @ (c != 0).sum(axis=1) <= compressor.density + 1e-9


@pytest.mark.parametrize("s", [1, 2, 5])
def test_the_bound_for_the_infinity_norm_is_attained(s):
    v = worst_for_the_infinity_norm(9, s)
    compressor = make({"name": "qsgd", "s": s, "norm": "inf"}).bind(9, 1, DOUBLE)
    c, weights = roundings(compressor, v, s * v - np.floor(s * v))
    assert variance(c, v, weights) == pytest.approx(compressor.omega, rel=1e-12)


def test_qsgd_levels_belong_to_the_norm_that_receivers_see():
    """The norm is rounded up to float32, so that unbiasedness is exact and no level exceeds s."""
    rng = np.random.default_rng(0)
    for d in (1, 2, 30):
        v = rng.standard_normal((200, d))
        message = make({"name": "qsgd", "s": 1000}).bind(d, 200, SINGLE).compress(v, draw(200))
        norms = message.norms[:, 0].astype(float)
        exact = np.sqrt((v.astype(np.longdouble) ** 2).sum(axis=1))
        assert np.all(norms >= np.abs(v).max(axis=1))
        assert np.all(norms >= exact * (1 - 1e-15)) and np.all(norms <= exact * (1 + 2.0**-22))
        assert np.all(np.abs(message.levels - 1000 * v / norms[:, None]) < 1)


def test_vectors_whose_squares_vanish():
    """Down to a few of the least numbers: lengths, to their last digit, and QUIC-FL's messages."""
    rows = np.random.default_rng(0).standard_normal((12, 64))
    v = rows * np.array([*10.0 ** -np.arange(140, 321, 20), 1e-300, 5e-324])[:, None]
    exact = np.sqrt((v.astype(np.longdouble) ** 2).sum(axis=1))
    lengths = block_norms(v, np.array([0, 64]), True)[:, 0]
    assert np.all(np.abs(lengths - exact) <= 1e-14 * exact + 5e-324)
    quic_fl = make({"name": "quic-fl", "bits": 2}).bind(64, 12, DOUBLE)
    c = received(quic_fl.compress(v, draw(12))).decoded()
    errors, squares = ((x[:9].astype(np.longdouble) ** 2).sum(axis=1) for x in (c - v, v))
    assert np.all(errors <= 2 * quic_fl.omega * squares)


def test_natural_over_all_roundings():
    for v in (np.array([1.0, -2.0, 0.0, 0.3, -1e-30, 3e38, 2.0**-126]), np.array([4 / 3])):
        up = np.abs(v) / np.exp2(np.floor(np.log2(np.abs(np.where(v == 0, 1, v))))) - 1
        natural = make({"name": "natural"}).bind(v.size, 1, DOUBLE)
        c, weights = roundings(natural, v, np.maximum(up, 0))
        np.testing.assert_allclose(weights @ c, v, rtol=1e-12)
        assert variance(c, v, weights) <= 1 / 8 + 1e-12
    assert variance(c, v, weights) == pytest.approx(1 / 8, rel=1e-12)  # 4/3 is the worst case


@pytest.mark.parametrize(("d", "k"), [(1, 1), (5, 2), (9, 4), (30, 3)])
def test_toplek_keeps_as_few_as_alpha_allows(d, k):
    """Two neighbouring TopK, so that E |C(v) - v|^2 = (1 - k / d) |v|^2."""
    v = np.random.default_rng(d).standard_normal(d)
    compressor = make({"name": "toplek", "k": k}).bind(d, 1, DOUBLE)
    words = np.array([[UP], [DOWN]], np.uint64)
    c = compressor.compress(np.tile(v, (2, 1)), chosen(words)).decoded()
    left = [variance(top(v[None], j), v) for j in range(d + 1)]
    target = 1 - compressor.alpha
    j = next(j for j in range(d + 1) if left[j] <= target)
    fewer = (target - left[j]) / (left[j - 1] - left[j])
    wanted = np.vstack([top(v[None], j - 1 if fewer > 0 else j), top(v[None], j)])
    np.testing.assert_array_equal(c, wanted)
    assert variance(c, v, [fewer, 1 - fewer]) == pytest.approx(target) == 1 - k / d
    for factor in (2.0**-700, 2.0**700):  # whose squares are 0 and infinite
        rows = np.tile(factor * v, (2, 1))
        scaled = compressor.compress(rows, chosen(words)).decoded()
        np.testing.assert_array_equal(scaled, factor * c)


def test_randseqk_keeps_a_run_of_coordinates_from_any_first_one():
    d, k = 5, 3
    v = np.arange(1.0, d + 1)
    compressor = make({"name": "randseqk", "k": k}).bind(d, 400, DOUBLE)
    c = compressor.compress(np.tile(v, (400, 1)), draw(400)).decoded()
    runs = [np.isin(np.arange(d), np.arange(first, first + k) % d) for first in range(d)]
    assert {tuple(row) for row in c} == {tuple(np.where(run, d / k * v, 0)) for run in runs}


@pytest.mark.parametrize("size", [1, 2, 8, 64])
def test_the_transform_is_the_hadamard_matrix(size):
    rows = np.random.default_rng(size).standard_normal((3, size))
    expected = rows @ matrix(size) / np.sqrt(size)
    hadamard(rows)
    np.testing.assert_allclose(rows, expected, atol=1e-14)


def over_all_signs(table, v):
    """C(v) for every vector of signs, which the draw would choose with the same probability."""
    d, size = v.size, 1 << (v.size - 1).bit_length()
    flips = np.array(list(product([1.0, -1.0], repeat=size)))
    compressor = make(table).bind(d, len(flips), DOUBLE)
    compressor.rotated = lambda given, inner: RotatedForm(d, given.workers, DOUBLE, inner, flips)
    return compressor, compressor.compress(np.tile(v, (len(flips), 1)), draw(len(flips))).decoded()


@pytest.mark.parametrize("d", [1, 2, 3, 5, 8])
def test_drive_contracts_by_one_half(d):
    """Two equal entries attain it."""
    rng = np.random.default_rng(d)
    pair = np.zeros(d)
    pair[[d // 2, -1]] = 2, -2
    for v in (rng.standard_normal(d), rng.standard_normal(d) ** 3, np.eye(d)[0], np.ones(d), pair):
        compressor, c = over_all_signs({"name": "drive"}, v)
        assert variance(c, v) <= 1 - compressor.alpha + 1e-12 == 0.5 + 1e-12
    if d == 8:  # the last vector attains it
        assert variance(c, v) == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize(
    "table",
    [
        {"name": "drive", "scale": "unbiased"},
        *({"name": "eden", "bits": b} for b in (1, 4)),
        {"name": "rotated", "inner": {"name": "qsgd", "s": 3, "norm": "inf"}},
    ],
    ids=str,
)
def test_the_mean_of_many_loses_its_error(table):
    """n |mean - v|^2 / E|C(v) - v|^2 has the mean 1 + n |bias|^2 / ..., and about the spread of
    chi^2 / d with d degrees of freedom: 5 sigma."""
    d, n = 512, 4000
    v = np.random.default_rng(0).standard_normal(d)
    c = make(table).bind(d, n, DOUBLE).compress(np.tile(v, (n, 1)), draw(n)).decoded()
    error = ((c - v) ** 2).sum(axis=1).mean()
    assert abs(n * ((c.mean(axis=0) - v) ** 2).sum() / error - 1) < 5 * (2 / d) ** 0.5
    if table["name"] != "rotated":
        np.testing.assert_allclose(c @ v, v @ v, rtol=1e-12)


# J. Max (1960), Table 1: the points of quantizers of 2, 4, 8 and 16 levels, and their errors
MAX = {
    1: ([0.7980], 0.3634),
    2: ([0.4528, 1.510], 0.1175),
    3: ([0.2451, 0.7560, 1.344, 2.152], 0.03454),
    4: ([0.1284, 0.3881, 0.6568, 0.9424, 1.256, 1.618, 2.069, 2.733], 0.009497),
}


@pytest.mark.parametrize("b", MAX)
def test_eden_has_the_points_of_max_and_their_errors(b):
    points, error = MAX[b]
    computed = normal_points(b)
    np.testing.assert_allclose(computed, [-x for x in points[::-1]] + points, rtol=5e-4)
    v = np.random.default_rng(b).standard_normal((40, 4096))
    for scale, limit in (("least", error), ("unbiased", error / (1 - error))):
        eden = make({"name": "eden", "bits": b, "scale": scale}).bind(4096, 40, SINGLE)
        c = eden.compress(v, draw(40)).decoded()
        assert ((c - v) ** 2).sum() / (v**2).sum() == pytest.approx(limit, rel=0.02)
