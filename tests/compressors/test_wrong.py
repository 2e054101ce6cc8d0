"""The tests of moments can fail: deliberately wrong compressors do not pass them."""

import numpy as np
import pytest

from mpisim.compressors.quantization import Qsgd
from mpisim.compressors.sparse import RandK
from mpisim.core.rng import Draw
from mpisim.testing.moments import biased, dependent, errors, exceeds, limit, samples
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
