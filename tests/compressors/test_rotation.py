"""Rotations against SciPy's Hadamard matrices, DRIVE's constants over all signs, EDEN's points."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.linalg import hadamard as matrix

from mpisim.compressors import make
from mpisim.compressors.rotation import normal_points
from mpisim.core.errors import InputError
from mpisim.testing import DOUBLE, SINGLE
from mpisim.wire.rotated import RotatedForm, hadamard
from tests.compressors.cases import draw


@pytest.mark.parametrize("size", [1, 2, 8, 64])
def test_the_transform_is_the_hadamard_matrix(size):
    rows = np.random.default_rng(size).standard_normal((3, size))
    expected = rows @ matrix(size) / np.sqrt(size)
    hadamard(rows)
    np.testing.assert_allclose(rows, expected, atol=1e-14)


def over_all_signs(table, v):
    """C(v) for every vector of signs, which the draw would choose with the same probability."""
    d = v.size
    size = 1 << (d - 1).bit_length()
    flips = np.array(list(product([1.0, -1.0], repeat=size)))
    compressor = make(table).bind(d, len(flips), DOUBLE)
    compressor.rotated = lambda given, inner: RotatedForm(d, given.workers, DOUBLE, inner, flips)
    return compressor, compressor.compress(np.tile(v, (len(flips), 1)), draw(len(flips))).decoded()


@pytest.mark.parametrize("d", [1, 2, 3, 5, 8])
def test_drive_contracts_by_one_half(d):
    rng = np.random.default_rng(d)
    vectors = [rng.standard_normal(d), rng.standard_normal(d) ** 3, np.eye(d)[0], np.ones(d)]
    for v in vectors:
        compressor, c = over_all_signs({"name": "drive"}, v)
        error = ((c - v) ** 2).sum(axis=1).mean() / (v @ v)
        assert error <= 1 - compressor.alpha + 1e-12 == 0.5 + 1e-12


def test_two_equal_entries_attain_it():
    v = np.array([0.0, 2.0, 0, 0, 0, -2.0, 0, 0])
    _, c = over_all_signs({"name": "drive"}, v)
    assert ((c - v) ** 2).sum(axis=1).mean() == pytest.approx(0.5 * (v @ v), rel=1e-12)


@pytest.mark.parametrize(
    ("scale", "limit"), [("least", 1 - 2 / np.pi), ("unbiased", np.pi / 2 - 1)]
)
@pytest.mark.parametrize("kind", ["normal", "one large"])
def test_long_vectors(scale, limit, kind):
    """Rotated coordinates are nearly normal, whatever v is but for few large entries: these are
    +-|v| / sqrt(D) and cost no error at all."""
    d = 4096
    v = np.random.default_rng(0).standard_normal((20, d))
    if kind == "one large":
        v = 1e-9 * v
        v[:, 3] = 1
        limit = 0
    c = make({"name": "drive", "scale": scale}).bind(d, 20, SINGLE).compress(v, draw(20)).decoded()
    errors = ((c - v) ** 2).sum(axis=1) / (v**2).sum(axis=1)
    np.testing.assert_allclose(errors.mean(), limit, atol=0.02)


@pytest.mark.parametrize(
    "table",
    [
        {"name": "drive", "scale": "unbiased"},
        *({"name": "eden", "bits": b} for b in (1, 2, 4)),
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
    own = normal_points(b)
    np.testing.assert_allclose(own, [-x for x in points[::-1]] + points, rtol=5e-4)
    v = np.random.default_rng(b).standard_normal((40, 4096))
    for scale, limit in (("least", error), ("unbiased", error / (1 - error))):
        eden = make({"name": "eden", "bits": b, "scale": scale}).bind(4096, 40, SINGLE)
        c = eden.compress(v, draw(40)).decoded()
        assert ((c - v) ** 2).sum() / (v**2).sum() == pytest.approx(limit, rel=0.02)


def test_eden_with_one_bit_is_drive_and_zero_is_zero():
    v = np.random.default_rng(0).standard_normal((5, 100))
    v[2] = 0
    for scale in ("least", "unbiased"):
        drive, eden = (
            make({"name": name, "scale": scale} | more).bind(100, 5, DOUBLE).compress(v, draw(5))
            for name, more in (("drive", {}), ("eden", {"bits": 1}))
        )
        np.testing.assert_allclose(eden.decoded(), drive.decoded(), rtol=1e-6, atol=1e-15)
        assert not eden.decoded()[2].any()


def test_inner_compressors_that_are_refused():
    with pytest.raises(InputError, match=r"compressor\.inner\.name: 'permk' is not allowed"):
        make({"name": "rotated", "inner": {"name": "permk"}}).bind(8, 4, SINGLE)
    with pytest.raises(InputError, match="'rank-k' is not allowed; it must not be fitted"):
        make({"name": "rotated", "inner": {"name": "rank-k", "k": 1}}).bind(8, 4, SINGLE)
