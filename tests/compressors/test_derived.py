"""Compressors whose constants are derived here: against worst cases, means and exact values."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from mpisim.compressors import make
from mpisim.compressors.quic_fl import largest_variance, unbiased_points
from mpisim.compressors.rotation import mean_cosine
from mpisim.wire.composed import hadamard
from tests.compressors.cases import DOUBLE, SINGLE, draw


def errors(c, v):
    return ((c - v) ** 2).sum(axis=-1) / (v**2).sum(axis=-1)


@pytest.mark.parametrize("nu", [0.9, 1 / 4, 1 / 9, 0.01])
def test_sparse_dithering_errs_by_at_most_nu(nu):
    """Steps of the definition; entries near a tie, which are the worst; a bound of the levels."""
    d, m, rng = 50, 300, np.random.default_rng(0)
    h = np.sqrt(nu / d)
    v = rng.standard_normal((m, d)) ** rng.choice([1, 3], (m, 1))
    v[: m // 2] = h * (2 * rng.integers(0, 3, (m // 2, d)) + 1)  # near ties, if |v| is near 1
    v[-1] = 1
    message = make({"name": "sparse-dithering", "nu": nu}).bind(d, m, DOUBLE).compress(v, draw(m))
    c, norms = message.decoded(), np.linalg.norm(v, axis=1, keepdims=True)
    k = np.ceil(np.abs(v) / (2 * h * norms) - 0.5)
    np.testing.assert_allclose(c, 2 * h * norms * np.sign(v) * k, rtol=1e-12, atol=1e-12)
    assert errors(c, v).max() <= nu * (1 + 1e-12)
    assert ((2 * k - 1) ** 2 * (k > 0)).sum(axis=1).max() <= d / nu * (1 + 1e-9)
    if nu == 1 / 9:
        assert errors(c, v)[-1] == pytest.approx(nu, rel=1e-12)  # 1.5 steps each


def test_mean_cosines():
    """In three dimensions cosines are uniform in [-1, 1]; in two, angles are. On a line one of two
    directions is wrong if all are. In many dimensions sqrt(d) times a cosine becomes normal, and
    the largest of two has the mean 1 / sqrt(pi)."""
    for b in (1, 2, 5, 10):
        n = 2**b
        assert mean_cosine(3, b) == pytest.approx((n - 1) / (n + 1), rel=1e-9)
    assert mean_cosine(2, 1) == pytest.approx(4 / np.pi**2, rel=1e-9)
    assert [mean_cosine(1, b) for b in (1, 2)] == [1 / 2, 7 / 8]
    assert mean_cosine(10**5, 1) * 10**2.5 == pytest.approx(np.pi**-0.5, rel=1e-4)
    draws = np.random.default_rng(0).standard_normal((10000, 64)).max(axis=1)
    limit, sigma = mean_cosine(10**5, 6) * 10**2.5, draws.std() / 100
    assert abs(draws.mean() - limit) < 5 * sigma


@pytest.mark.parametrize(("d", "bits"), [(1, 1), (2, 3), (9, 4), (40, 5)])
def test_every_vector_attains_the_constants_of_spherical(d, bits):
    m = 3000
    for kind in (np.eye(d)[0], np.ones(d), np.random.default_rng(d).standard_normal(d)):
        v = np.tile(kind / np.linalg.norm(kind), (m, 1))
        cosines = []
        for scale in ("unbiased", "least"):
            table = {"name": "spherical", "bits": bits, "scale": scale}
            compressor = make(table).bind(d, m, SINGLE)
            c = compressor.compress(v, draw(m)).decoded()
            sigma = 5 * c.std(axis=0) / m**0.5 + 1e-7
            mean = 1.0 if scale == "unbiased" else compressor.alpha
            assert np.all(np.abs(c.mean(axis=0) - mean * v[0]) < sigma)
            bound = compressor.omega if scale == "unbiased" else 1 - compressor.alpha
            e = errors(c, v)
            assert abs(e.mean() - bound) < 5 * e.std() / m**0.5 + 1e-6
            cosines.append((c @ v[0]) / np.linalg.norm(c, axis=1))
        np.testing.assert_allclose(*cosines, atol=1e-6)


def variance(q, u):
    """Of u rounded at random to its neighbours in q, 0 beyond."""
    at = np.clip(np.searchsorted(q, u), 1, len(q) - 1)
    return np.maximum((u - q[at - 1]) * (q[at] - u), 0)


def normal_variance(q):
    return sum(quad(lambda z: variance(q, z) * norm.pdf(z), *ends)[0] for ends in pairwise(q))


# of the docstring: D_b and omega
PRINTED = {1: (8.597, 9.593), 2: (0.573, 0.844), 3: (0.0926, 0.161), 4: (0.0195, 0.0411)}


@pytest.mark.parametrize("b", PRINTED)
def test_no_other_values_have_less_variance(b):
    """The printed numbers, and values that are moved a little, both of a size."""
    q = unbiased_points(b, 1 / 512)
    assert q.size == 2**b and np.array_equal(q, -q[::-1])
    assert 2 * norm.sf(q[-1]) == pytest.approx(1 / 512, rel=1e-4)
    least = normal_variance(q)
    printed = least, largest_variance(q)
    assert printed == pytest.approx(PRINTED[b], rel=6e-3)
    for i in range(2 ** (b - 1), 2**b - 1):
        for step in (-0.02, 0.02):
            moved = q.copy()
            moved[i], moved[-1 - i] = q[i] + step, q[-1 - i] - step
            assert normal_variance(moved) > least


@pytest.mark.parametrize("b", [1, 2, 4])
@pytest.mark.parametrize("p", [1 / 512, 0.2])
def test_omega_of_quic_fl_is_the_largest_variance_of_all(b, p):
    """Random u of two sizes, whose squares have the mean 1: none beyond, and one is near."""
    q, most = unbiased_points(b, p), 0.0
    square = np.append(np.linspace(0, q[-1] ** 2 * 1.2, 600), 1e4)
    each = variance(q, np.sqrt(square))
    for low, first in zip(square[square <= 1], each[square <= 1], strict=True):
        share = (1 - low) / (square[square > 1] - low)
        most = max(most, (first + share * (each[square > 1] - first)).max())
    omega = largest_variance(q)
    assert 0.98 * omega < most <= omega * (1 + 1e-9)


@pytest.mark.parametrize("b", [1, 2, 3])
def test_quic_fl_in_its_worst_case(b):
    """v is such that its rotation has the u of the largest variance: two sizes, or a few exact."""
    d, m = 64, 4000
    compressor = make({"name": "quic-fl", "bits": b}).bind(d, m, SINGLE)
    q, form = compressor.values, compressor.form(draw(m))
    u = np.zeros(d)
    if b == 1:
        u[5] = np.sqrt(d)  # the others are at 0, which has the variance t^2
    else:
        middle = (q[-1] + q[-2]) / 2
        large = int(d / middle**2)
        u[:large], u[large:] = middle, np.sqrt((d - large * middle**2) / (d - large))
    v = np.tile(u, (m, 1))
    hadamard(v)
    v *= form.flips
    c = compressor.compress(v, draw(m)).decoded()
    e = errors(c, v)
    expected = variance(q, u).mean()
    assert abs(e.mean() - expected) < 5 * e.std() / m**0.5 + 1e-9
    assert 0.85 * compressor.omega < expected <= compressor.omega * (1 + 1e-9)
    off = (c - v) * form.flips  # unbiased for every rotation, in its coordinates
    assert np.all(np.abs(off.mean(axis=0)) < 5 * off.std(axis=0) / m**0.5 + 1e-6)


@pytest.mark.parametrize("p", [1 / 512, 0.05])
def test_quic_fl_of_long_vectors(p):
    """Rotated entries are nearly normal, and the share p of them is exact."""
    d, m = 4096, 30
    v = np.random.default_rng(2).laplace(size=(m, d))
    compressor = make({"name": "quic-fl", "bits": 2, "p": p}).bind(d, m, SINGLE)
    message = compressor.compress(v, draw(m))
    D_2 = normal_variance(compressor.values)
    assert errors(message.decoded(), v).mean() == pytest.approx(D_2, rel=0.03)
    exact = np.diff(message.inner.parts[1].ptr)
    assert exact.max() <= d / compressor.values[-1] ** 2
    assert abs(exact.mean() - p * d) < 6 * np.sqrt(p * d / m)
