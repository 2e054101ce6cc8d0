"""Permutation compressors by enumerating every permutation: unbiasedness, and the AB inequality as
the equality that it is; blocks as slices of the whole."""

import dataclasses
from itertools import pairwise, product

import numpy as np
import pytest

from mpisim.compressors import make
from mpisim.core.rng import Streams
from tests.compressors.cases import DOUBLE, SINGLE, draw
from tests.compressors.permutations import (
    PERMK,
    Chosen,
    draws,
    error_of_mean,
    shuffles,
    sides,
    words,
)

SUBSETS = [[0, 2], [1], [1], [], [0], [2]]


EQUALITIES = [
    (PERMK, 4, 2, 1.0),  # Theorem 1
    (PERMK, 2, 4, 1 - 2 / 3),  # Theorem 2
    (PERMK, 3, 3, 1.0),
    (PERMK, 5, 3, 1.0),  # Theorem 8, d = 3 + 2
    (PERMK, 5, 2, 1.0),
    (PERMK, 3, 5, 1.0),  # Theorem 9, q = 1, two are idle
    (PERMK, 2, 5, 1 - 5 / 8),  # q = 2, one is idle
    (PERMK, 1, 5, 0.0),  # everyone sends the one coordinate
    ({"name": "block-permutation", "blocks": 2}, 4, 5, 1 - 5 / 8),  # Lemma 10
    ({"name": "block-permutation", "blocks": 3}, 5, 4, 1.0),
    ({"name": "block-permutation", "blocks": 1}, 3, 4, 0.0),
    ({"name": "block-permutation", "blocks": [1, 3]}, 4, 5, 1 - 5 / 8),  # unequal lengths
    ({"name": "block-permutation", "blocks": [3, 1, 1]}, 5, 4, 1.0),
    ({"name": "pattern", "s": 2}, 4, 5, 1 - 5 / 8),  # s copies, as in Lemma 10
    ({"name": "pattern", "s": 3}, 3, 5, 1 - 10 / 12),
    ({"name": "permuted-subsets", "subsets": SUBSETS}, 3, 6, 1 - 6 / 10),  # Lemma 11
]


@pytest.mark.drawn(8)
@pytest.mark.parametrize(("table", "d", "n", "constant"), EQUALITIES, ids=str)
def test_the_ab_inequality_is_an_equality(table, d, n, constant):
    compressor = make(table).bind(d, n, DOUBLE)
    assert compressor.A == compressor.B == pytest.approx(constant, abs=1e-15)
    assert compressor.correlated
    a = np.random.default_rng(d + n).standard_normal((n, d))
    bounds = shuffles(d, n) if table is PERMK else list(range(n, 0, -1))
    outcomes = [compressor.compress(a, one).decoded() for one in draws(bounds, n)]
    assert len(outcomes) == np.prod(bounds)
    np.testing.assert_allclose(np.mean(outcomes, axis=0), a, rtol=1e-12)  # E C_i(a_i) = a_i
    squares = np.mean([((c - a) ** 2).sum(axis=1) for c in outcomes], axis=0)
    np.testing.assert_allclose(squares, compressor.omega * (a**2).sum(axis=1), rtol=1e-12)
    assert np.mean([(c != 0).sum(axis=1) for c in outcomes]) == pytest.approx(compressor.density)
    mean_square, square_mean = sides(a)
    right = compressor.A * mean_square - compressor.B * square_mean
    assert error_of_mean(outcomes, a) == pytest.approx(right, rel=1e-12, abs=1e-14)


PARTITIONS = [
    (2, 3, 2),  # groups of 1 and 2
    (2, 4, [[3], [0, 2, 1]]),  # one keeps all, three on two coordinates
    (1, 5, [[4, 0], [1, 3, 2]]),
    (2, 4, [[2, 0], [3, 1]]),  # even, and not neighbours
]


@pytest.mark.parametrize(("d", "n", "groups"), PARTITIONS, ids=str)
def test_any_partition(d, n, groups):
    """Appendix M: Lemma 17 by enumeration, and the constants for all workers as a bound."""
    compressor = make(PERMK | {"groups": groups}).bind(d, n, DOUBLE)
    lists = groups if isinstance(groups, list) else [[0], [1, 2]]
    bounds = [shuffles(d, len(own)) for own in lists]
    longest = max(map(len, bounds))
    a, outcomes = np.random.default_rng(d + n).standard_normal((n, d)), []
    for rows in product(*map(words, bounds)):
        shared = np.array([row + [0] * (longest - len(row)) for row in rows], np.uint64)
        one = Chosen(Streams(0), "up", 0, 0, n, shared=shared)
        outcomes.append(compressor.compress(a, one).decoded())
    np.testing.assert_allclose(np.mean(outcomes, axis=0), a, rtol=1e-12)
    squares = np.mean([((c - a) ** 2).sum(axis=1) for c in outcomes], axis=0)
    assert (squares <= compressor.omega * (a**2).sum(axis=1) * (1 + 1e-12)).all()
    found, right = error_of_mean(outcomes, a), 0.0
    for k, own in enumerate(lists):
        alone = make(PERMK).bind(d, len(own), DOUBLE)
        assert compressor.by_group.A[k] == compressor.by_group.B[k] == alone.A
        mean_square, square_mean = sides(a[own])
        right += (len(own) / n) ** 2 * (alone.A * mean_square - alone.B * square_mean)
    assert found == pytest.approx(right, rel=1e-12, abs=1e-14)
    mean_square, square_mean = sides(a)
    assert found <= compressor.A * mean_square - compressor.B * square_mean + 1e-12
    assert max((c != 0).sum(axis=1).mean() for c in outcomes) <= compressor.density + 1e-12


TABLES = [
    PERMK,
    PERMK | {"groups": 3},
    PERMK | {"groups": 4},
    PERMK | {"groups": [[8, 0, 3, 1], [2], [4, 5, 6, 7]]},
    {"name": "block-permutation", "blocks": 4},
    {"name": "block-permutation", "blocks": [1, 6, 2]},
    {"name": "pattern", "s": 4},
    {"name": "permuted-subsets", "subsets": [[i % 9, (i + 4) % 9] for i in range(9)]},
]


@pytest.mark.drawn(8)
@pytest.mark.parametrize("table", TABLES, ids=str)
@pytest.mark.parametrize("d", [9, 40])
def test_forms_are_slices_of_the_whole(table, d):
    if d == 40 and table["name"] == "permuted-subsets":
        table = table | {"subsets": [list(range(40)) for _ in range(9)]}
    if d == 40 and table.get("blocks") == [1, 6, 2]:
        table = table | {"blocks": [1, 37, 2]}
    compressor = make(table).bind(d, 9, SINGLE)
    whole = compressor.form(draw(9))
    rows = [whole.indices[a:b].tolist() for a, b in pairwise(whole.ptr)]
    assert all(row == sorted(set(row)) for row in rows)
    for first, stop in [(0, 9), (0, 0), (2, 7), (8, 9)]:
        fresh = make(table).bind(d, 9, SINGLE)
        part = fresh.form(draw(stop - first, first=first))
        found = [part.indices[a:b].tolist() for a, b in pairwise(part.ptr)]
        assert found == rows[first:stop] and part.ptr[0] == 0
        factors = np.broadcast_to(whole.scale, whole.ptr[-1])[whole.ptr[first] : whole.ptr[stop]]
        assert np.array_equal(np.broadcast_to(part.scale, part.indices.size), factors)
    clients = np.array([1, 4, 5, 8])
    some = compressor.form(dataclasses.replace(draw(5, first=3), clients=clients))
    if table["name"] == "pattern":  # dealt to those who send: the second and third of four
        whole = compressor.form(dataclasses.replace(draw(9), clients=clients))
        rows[4:6] = [whole.indices[a:b].tolist() for a, b in list(pairwise(whole.ptr))[1:3]]
    assert [some.indices[a:b].tolist() for a, b in pairwise(some.ptr)] == [rows[i] for i in [4, 5]]
    assert some.workers == 2
