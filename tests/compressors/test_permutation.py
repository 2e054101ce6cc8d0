"""Compressors that draw together, over every permutation."""

import dataclasses
from collections.abc import Iterator
from itertools import combinations, product

import numpy as np
import pytest

from mpisim.compressors import make
from mpisim.core.errors import WireError
from mpisim.core.rng import Streams
from mpisim.testing.moments import vectors
from tests.compressors.cases import DOUBLE, PERMK, SINGLE, Chosen, composed, draw
from tests.compressors.test_battery import draws_again, like_every_compressor


def words(bounds: list[int]) -> Iterator[list[int]]:
    """Every choice of one number below each bound, as words that give it."""
    for choice in product(*map(range, bounds)):
        yield [((2 * c + 1) << 63) // bound for c, bound in zip(choice, bounds, strict=True)]


def shuffles(d: int, n: int) -> list[int]:
    """The bounds of one group's draws: a permutation of d, and d mod n workers, or of n slots."""
    return [*range(d, 0, -1), *range(n, n - d % n, -1)] if n <= d else list(range(n, 0, -1))


def draws(bounds: list[int], n: int) -> Iterator[Chosen]:
    """Every outcome of the shared draw of one group, each as likely as the others."""
    for row in words(bounds):
        yield Chosen(Streams(0), "up", 0, 0, n, shared=np.array([row], np.uint64))


def error_of_mean(outcomes: list[np.ndarray], a: np.ndarray, weights=None) -> float:
    errors = [((c.mean(axis=0) - a.mean(axis=0)) ** 2).sum() for c in outcomes]
    return float(np.average(errors, weights=weights))


def sides(a: np.ndarray) -> tuple[float, float]:
    """(1/n) sum |a_i|^2 and |(1/n) sum a_i|^2."""
    return float((a**2).sum(axis=1).mean()), float((a.mean(axis=0) ** 2).sum())


def moments(outcomes: list[np.ndarray], a: np.ndarray, weights=None) -> tuple[np.ndarray, ...]:
    """E C_i(a_i) and E|C_i(a_i) - a_i|^2."""
    squares = [((c - a) ** 2).sum(axis=1) for c in outcomes]
    return np.average(outcomes, axis=0, weights=weights), np.average(squares, 0, weights)


SUBSETS = [[0, 2], [1], [1], [], [0], [2]]


def bound(compressor, a):
    """The right side of the AB inequality."""
    mean_square, square_mean = sides(a)
    return compressor.A * mean_square - compressor.B * square_mean


def attains(compressor, outcomes, a, atol=0.0) -> None:
    """E C_i(a_i) = a_i, and omega, A and B hold with equality."""
    mean, squares = moments(outcomes, a)
    np.testing.assert_allclose(mean, a, rtol=1e-12, atol=atol)
    expected = compressor.omega * (a**2).sum(axis=1)
    np.testing.assert_allclose(squares, expected, rtol=1e-12, atol=atol)
    error = pytest.approx(bound(compressor, a), rel=1e-12, abs=max(atol, 1e-14))
    assert error_of_mean(outcomes, a) == error


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
    attains(compressor, outcomes, a)
    assert np.mean([(c != 0).sum(axis=1) for c in outcomes]) == pytest.approx(compressor.density)


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
    bounds = [shuffles(d, len(group)) for group in lists]
    longest = max(map(len, bounds))
    a, outcomes = np.random.default_rng(d + n).standard_normal((n, d)), []
    for rows in product(*map(words, bounds)):
        shared = np.array([row + [0] * (longest - len(row)) for row in rows], np.uint64)
        one = Chosen(Streams(0), "up", 0, 0, n, shared=shared)
        outcomes.append(compressor.compress(a, one).decoded())
    mean, squares = moments(outcomes, a)
    np.testing.assert_allclose(mean, a, rtol=1e-12)
    assert (squares <= compressor.omega * (a**2).sum(axis=1) * (1 + 1e-12)).all()
    result, right = error_of_mean(outcomes, a), 0.0
    for k, group in enumerate(lists):
        alone = make(PERMK).bind(d, len(group), DOUBLE)
        assert compressor.by_group.A[k] == compressor.by_group.B[k] == alone.A
        right += (len(group) / n) ** 2 * bound(alone, a[group])
    assert result == pytest.approx(right, rel=1e-12, abs=1e-14)
    assert result <= bound(compressor, a) + 1e-12
    assert max((c != 0).sum(axis=1).mean() for c in outcomes) <= compressor.density + 1e-12


def frame(n):
    """n directions in the plane, evenly: each worker sends a number."""
    angles = np.pi / 2 + 2 * np.pi * np.arange(n) / n
    return [[[np.sqrt(2) * np.cos(t), np.sqrt(2) * np.sin(t)]] for t in angles]


C, S = 0.8 * np.sqrt(2), 0.6 * np.sqrt(2)


def full(*matrices):
    """Any matrices: the rows of Q_j are sent, those of I receive them."""
    d = len(matrices[0])
    return {
        "analysis": [list(map(list, m)) for m in matrices],
        "synthesis": [np.eye(d).tolist()] * len(matrices),
    }


BASIS = {"analysis": [[[1.0, 0.0]], [[0.0, 1.0]]], "synthesis": [[[2.0, 0.0]], [[0.0, 2.0]]]}
IDLE = {"analysis": [[[2.0]], [[2.0]], [], []], "synthesis": [[[1.0]], [[1.0]], [], []]}
LEMMA = {  # the keys, d, n and theta
    "PermK's coordinates": (BASIS, 2, 2, 4.0),
    "PermK in another basis": ({"analysis": [[[C, S]], [[-S, C]]]}, 2, 2, 4.0),
    "three directions in the plane": ({"analysis": frame(3)}, 2, 3, 6.0),
    "any theta": (full([[2, 0.5], [0.5, 0]], [[0, -0.5], [-0.5, 2]]), 2, 2, 4.5),
    "some send nothing": (IDLE, 1, 4, 8.0),
    "the identity": (full(np.eye(2), np.eye(2), np.eye(2)), 2, 3, 3.0),
}


def outcomes_of(compressor, a):
    n = len(a)
    return [compressor.compress(a, one).decoded() for one in draws(list(range(n, 0, -1)), n)]


@pytest.mark.parametrize("name", LEMMA)
def test_lemma_11(name):
    keys, d, n, theta = LEMMA[name]
    compressor = make({"name": "permuted-mappings"} | keys).bind(d, n, DOUBLE)
    omega = theta / n - 1
    assert compressor.omega == pytest.approx(omega, abs=1e-12)
    A = (omega + 1) / n - (1 - theta / n**2) / (n - 1)
    B = 1 - n / (n - 1) * (1 - theta / n**2)
    assert pytest.approx((A, B), abs=1e-12) == (compressor.A, compressor.B)
    a = np.random.default_rng(n).standard_normal((n, d))
    attains(compressor, outcomes_of(compressor, a), a, atol=1e-12)


LISTS = [  # for seven workers, which the battery's dimensions do not fit
    (PERMK | {"groups": [[6, 0, 3, 1], [5], [2, 4]]}, 9),
    (PERMK | {"groups": [[6, 0, 3, 1], [5], [2, 4]]}, 2),
    ({"name": "permuted-subsets", "subsets": [[i, (i + 4) % 7] for i in range(7)]}, 7),
    ({"name": "permuted-mappings", "analysis": frame(7)}, 2),
]


@pytest.mark.parametrize(("table", "d"), LISTS, ids=str)
def test_lists_like_every_compressor(table, d):
    compressor = make(table).bind(d, 7, SINGLE)
    like_every_compressor(compressor)
    draws_again(compressor)
    if table["name"] == "permuted-mappings":
        message = compressor.compress(vectors(7, d), draw(7))
        bits = message.payload_bits.tolist()
        assert bits == compressor.paper_bits(message).tolist() == [32] * 7


def test_without_condition_2_the_constants_are_attained():
    """S is no multiple of I: an inequality, with equality along its leading eigenvector."""
    keys = full([[2, 0.5], [-0.5, 0]], [[0, -0.5], [0.5, 2]])
    compressor = make({"name": "permuted-mappings"} | keys).bind(2, 2, DOUBLE)
    q = np.array(keys["analysis"])
    values, vectors = np.linalg.eigh(sum(one.T @ one for one in q))
    assert values[1] > values[0] + 0.1 and compressor.omega == pytest.approx(values[1] / 2 - 1)
    for a in np.random.default_rng(0).standard_normal((20, 2, 2)):
        outcomes = outcomes_of(compressor, a)
        np.testing.assert_allclose(np.mean(outcomes, axis=0), a, atol=1e-12)
        assert error_of_mean(outcomes, a) <= bound(compressor, a) + 1e-12
    worst = np.outer([1.0, -1.0], vectors[:, 1])
    error = error_of_mean(outcomes_of(compressor, worst), worst)
    assert error == pytest.approx(bound(compressor, worst))


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
            group = np.zeros((n, d), np.uint64)
            group[workers, place] = np.where(way, 0, 2**64 - 1)
            draw = dataclasses.replace(one, chosen=group)
            outcomes.append(compressor.compress(a, draw).decoded())
            weights.append(np.prod(np.where(way, up, 1 - up)))
    return compressor, outcomes, np.array(weights)


ONE_BLOCK = {"name": "block-permutation", "blocks": 1}


@pytest.mark.parametrize(
    ("outer", "d", "n"), [(PERMK, 4, 2), (PERMK, 3, 2), (PERMK, 2, 4), (ONE_BLOCK, 2, 2)]
)
def test_composition_over_all_permutations_and_roundings(outer, d, n):
    """At 4/3 natural compression has its largest variance: then PermK's A and B are attained, and
    for B < 1 Lemma 9's own A would be too small."""
    for a in (np.random.default_rng(d).standard_normal((n, d)), np.full((n, d), 4 / 3)):
        compressor, outcomes, weights = all_roundings(composed(outer, {"name": "natural"}), a)
        mean, squares = moments(outcomes, a, weights)
        np.testing.assert_allclose(mean, a, rtol=1e-12)
        error = error_of_mean(outcomes, a, weights)
        assert error <= bound(compressor, a) + 1e-12
        assert np.all(squares <= compressor.omega * (a**2).sum(axis=1) + 1e-12)
    if outer is PERMK and d != 3:
        assert error == pytest.approx(bound(compressor, a), rel=1e-12)
        mean_square, square_mean = sides(a)
        lemma = (1 + 1 / 8) * compressor.outer.A * mean_square - compressor.B * square_mean
        assert error == pytest.approx(lemma) if n <= d else error > 1.3 * lemma


@pytest.mark.parametrize(("d", "n", "k"), [(2, 2, 1), (3, 2, 2), (2, 4, 1)])
def test_of_two_sparsifiers(d, n, k):
    """C_i(Q_i(v)) with RandK inside, over all permutations and all subsets."""
    compressor = make(composed(PERMK, {"name": "randk", "k": k})).bind(d, n, DOUBLE)
    a = np.random.default_rng(d).standard_normal((n, d))
    outcomes = []
    for one in draws(shuffles(d, n), n):
        for rows in product(combinations(range(d), k), repeat=n):
            group = dataclasses.replace(one, chosen=np.array(rows))
            message = compressor.compress(a, group)
            alone = compressor.outer.form(one)
            assert message.form.counts.max() <= min(k, alone.counts.max())
            outcomes.append(message.decoded())
    attains(compressor, outcomes, a)  # as RandK attains omega
    assert np.mean([(c != 0).sum(axis=1) for c in outcomes]) == pytest.approx(compressor.density)


@pytest.mark.parametrize("inner", [{"name": "qsgd", "s": 2}, {"name": "natural"}])
def test_a_worker_that_keeps_nothing_sends_nothing(inner):
    """With n = 7 > d = 3 one worker of PermK is idle; a message of it is refused."""
    compressor, one = make(composed(PERMK, inner)).bind(3, 7, DOUBLE), draw(7)
    form, packed = compressor.form(one), compressor.compress(vectors(7, 3), one).encode()
    [idle] = np.flatnonzero(form.kept.counts == 0)
    assert packed.sizes[idle] == 0 and form.decode(packed.data, packed.sizes)
    sizes = packed.sizes + (np.arange(7) == idle)
    data = np.insert(packed.data, packed.sizes[:idle].sum(), 255)
    agreed = form.sizes is not None
    why = "agreed on" if agreed else "a worker that keeps no coordinate sent a message"
    with pytest.raises(WireError, match=why):
        form.decode(data, sizes)
