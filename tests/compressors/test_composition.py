"""C_i o Q_i over all permutations and roundings: Lemma 9 with what its proof leaves out."""

import dataclasses
from itertools import combinations, product

import numpy as np
import pytest

from mpisim.compressors import make
from mpisim.core.errors import WireError
from mpisim.testing.moments import vectors
from tests.compressors.cases import DOUBLE, draw
from tests.compressors.permutations import PERMK, Chosen, draws, error_of_mean, shuffles, sides


def composed(inner: dict, outer: dict = PERMK) -> dict:
    return {"name": "compose", "outer": outer, "inner": inner}


def all_roundings(table: dict, a: np.ndarray):
    """Outcomes of C_i(Q_i(a_i)) and their weights, with Q = natural, over both draws."""
    n, d = a.shape
    compressor = make(table).bind(d, n, DOUBLE)
    bounds = shuffles(d, n) if table["outer"] == PERMK else list(range(n, 0, -1))
    fraction = np.abs(a) / 2 ** np.floor(np.log2(np.abs(a))) - 1  # goes up with this probability
    outcomes, weights = [], []
    for one in draws(bounds, n):
        kept = compressor.outer.form(one)
        workers = np.repeat(np.arange(n), np.diff(kept.ptr))
        place = np.arange(kept.indices.size) - kept.ptr[workers]
        up = fraction[workers, kept.indices]
        for way in product([False, True], repeat=workers.size):
            way = np.array(way)
            own = np.zeros((n, d), np.uint64)
            own[workers, place] = np.where(way, 0, 2**64 - 1)
            draw = dataclasses.replace(one, own=own)
            outcomes.append(compressor.compress(a, draw).decoded())
            weights.append(np.prod(np.where(way, up, 1 - up)))
    return compressor, outcomes, np.array(weights)


@pytest.mark.parametrize(
    ("outer", "d", "n"),
    [
        (PERMK, 4, 2),
        (PERMK, 3, 2),
        (PERMK, 2, 4),
        ({"name": "block-permutation", "blocks": 1}, 2, 2),
    ],
)
def test_composition_over_all_permutations_and_roundings(outer, d, n):
    table = composed({"name": "natural"}, outer)
    a = np.random.default_rng(d).standard_normal((n, d))
    compressor, outcomes, weights = all_roundings(table, a)
    np.testing.assert_allclose(np.average(outcomes, axis=0, weights=weights), a, rtol=1e-12)
    mean_square, square_mean = sides(a)
    found = error_of_mean(outcomes, a, weights)
    assert found <= compressor.A * mean_square - compressor.B * square_mean + 1e-12
    second = [((c - a) ** 2).sum(axis=1) for c in outcomes]
    variance = np.average(second, axis=0, weights=weights)
    assert np.all(variance <= compressor.omega * (a**2).sum(axis=1) + 1e-12)


@dataclasses.dataclass(eq=False)
class Kept(Chosen):
    """A draw with given coordinates for RandK: shape (workers, k)."""

    subset: np.ndarray = dataclasses.field(default_factory=lambda: np.empty(0))

    def subsets(self, d: int, k: int) -> np.ndarray:
        return self.subset


@pytest.mark.parametrize(("d", "n", "k"), [(2, 2, 1), (3, 2, 2), (2, 4, 1)])
def test_of_two_sparsifiers(d, n, k):
    """C_i(Q_i(v)) with RandK inside, over all permutations and all subsets."""
    compressor = make(composed({"name": "randk", "k": k})).bind(d, n, DOUBLE)
    a = np.random.default_rng(d).standard_normal((n, d))
    outcomes = []
    for one in draws(shuffles(d, n), n):
        for rows in product(combinations(range(d), k), repeat=n):
            own = Kept(one.streams, "up", 0, 0, n, shared=one.shared, subset=np.array(rows))
            message = compressor.compress(a, own)
            alone = compressor.outer.form(one)
            assert message.form.counts.max() <= min(k, alone.counts.max())
            outcomes.append(message.decoded())
    np.testing.assert_allclose(np.mean(outcomes, axis=0), a, rtol=1e-12)
    squares = np.mean([((c - a) ** 2).sum(axis=1) for c in outcomes], axis=0)
    np.testing.assert_allclose(squares, compressor.omega * (a**2).sum(axis=1), rtol=1e-12)
    mean_square, square_mean = sides(a)
    right = compressor.A * mean_square - compressor.B * square_mean
    assert error_of_mean(outcomes, a) == pytest.approx(right, rel=1e-12)  # RandK attains omega
    assert np.mean([(c != 0).sum(axis=1) for c in outcomes]) == pytest.approx(compressor.density)


@pytest.mark.parametrize("inner", [{"name": "qsgd", "s": 2}, {"name": "natural"}])
def test_a_worker_that_keeps_nothing_sends_nothing(inner):
    """With n = 7 > d = 3 one worker of PermK is idle; a message of it is refused."""
    compressor, one = make(composed(inner)).bind(3, 7, DOUBLE), draw(7)
    form, packed = compressor.form(one), compressor.compress(vectors(7, 3), one).encode()
    [idle] = np.flatnonzero(form.kept.counts == 0)
    assert packed.sizes[idle] == 0 and form.decode(packed.data, packed.sizes)
    sizes = packed.sizes + (np.arange(7) == idle)
    data = np.insert(packed.data, packed.sizes[:idle].sum(), 255)
    known = form.sizes is not None
    why = "agreed on" if known else "a worker that keeps no coordinate sent a message"
    with pytest.raises(WireError, match=why):
        form.decode(data, sizes)


@pytest.mark.parametrize(("d", "n"), [(4, 2), (2, 4)])
def test_composition_attains_its_constants(d, n):
    """At 4/3 natural compression has its largest variance: then A and B are attained, and for
    B < 1 Lemma 9's own A would be too small."""
    a = np.full((n, d), 4 / 3)
    compressor, outcomes, weights = all_roundings(composed({"name": "natural"}), a)
    mean_square, square_mean = sides(a)
    found = error_of_mean(outcomes, a, weights)
    right = compressor.A * mean_square - compressor.B * square_mean
    assert found == pytest.approx(right, rel=1e-12)
    lemma = (1 + 1 / 8) * compressor.outer.A * mean_square - compressor.B * square_mean
    assert found == pytest.approx(lemma) if n <= d else found > 1.3 * lemma
