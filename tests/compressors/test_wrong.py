"""The tests of moments can fail: deliberately wrong compressors do not pass them."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest

from mpisim.compressors.quantization import Qsgd
from mpisim.compressors.sparse import Bernoulli, RandK
from mpisim.core.rng import Draw
from mpisim.testing import moments
from mpisim.testing.moments import biased, dependent, differs, errors, exceeds, limit, samples
from tests.compressors.cases import SINGLE, draw

V = np.random.default_rng(4).standard_normal(12)


class Unscaled(RandK):
    """RandK without d / k."""

    def compress(self, v, draw):
        return super().compress(v * (self.k / self.d), draw)


class AllAlike(RandK):
    """The published code's mistake: all workers keep the same coordinates."""

    def form(self, draw: Draw):
        rows = np.tile(draw.block(0, 1).subsets(self.d, self.k), (draw.workers, 1))
        from mpisim.wire.sparse import SeededForm

        return SeededForm.of_rows(self.d, self.precision, rows, self.d / self.k)


class Lower(Draw):
    """Uniforms squared: rounding up too often."""

    def words(self, count):
        u = super().words(count) >> np.uint64(32)
        return (u * u) & np.uint64(2**64 - 1)


def test_a_missing_scale_is_seen():
    compressor = Unscaled(3).bind(12, 1, SINGLE)
    assert biased(samples(compressor, V, 4000), V, compressor.omega)


def test_shared_coordinates_are_seen():
    compressor = AllAlike(3).bind(12, 1, SINGLE)
    c = np.vstack([samples_of(compressor, r) for r in range(500)])
    assert not biased(c[::2], V, compressor.omega)
    assert dependent(c, V, compressor.omega)


def samples_of(compressor, round):
    return compressor.compress(np.tile(V, (2, 1)), draw(2, round=round)).decoded()


def test_biased_rounding_is_seen():
    n = 4000
    compressor = Qsgd(2).bind(12, 1, SINGLE)
    source = draw(n)
    wrong = Lower(source.streams, source.purpose, source.round, 0, n)
    c = compressor.compress(np.tile(V, (n, 1)), wrong).decoded()
    assert biased(c, V, compressor.omega)


@pytest.mark.parametrize("k", [1, 3])
def test_an_omega_that_is_too_small_is_seen(k):
    compressor = RandK(k).bind(12, 1, SINGLE)
    assert exceeds(errors(samples(compressor, V, 4000), V), 0.85 * compressor.omega, limit(12))


def test_rounding_that_is_rarely_up_is_not_rejected():
    """Levels that are met once in thousands of draws: their variance is 0 in most samples."""
    for s in (30, 300, 3000):
        compressor = Qsgd(s).bind(12, moments.DRAWS, SINGLE)
        moments.omega(compressor)
        moments.density(compressor)
    for p in (1e-5, 1e-3):
        compressor = Bernoulli(p).bind(12, moments.DRAWS, SINGLE)
        moments.omega(compressor)
        moments.density(compressor)


@pytest.mark.parametrize("p", [1e-5, 1e-3, 0.03, 0.5])
def test_the_tests_reject_as_rarely_as_they_say(p):
    """Extreme distributions: events that are seen rarely or never, on either side."""
    rng, n, rate = np.random.default_rng(0), 4000, log(100)
    rare = (rng.random((3000, n)) < p).astype(float)
    centred = (rare - p) / sqrt(p * (1 - p))
    for sign in (1, -1):
        assert differs(sign * centred.T, 1.0, 0.0, rate).mean() <= 2 / 100
    often = [exceeds(row, p, rate) for row in rare[:1000]]
    seldom = [exceeds(1 - row, 1 - p, rate) for row in rare[:1000]]
    assert max(np.mean(often), np.mean(seldom)) <= moments.STEPS.size / 100
