"""Draws depend on their address alone."""

import numpy as np
import pytest
from scipy import stats

from mpisim.core.rng import Draw, Streams, purpose_key


def draw(first, workers, seed=3, purpose="up", round=5):
    return Draw(Streams(seed), purpose, round, first, workers)


def test_every_part_of_the_address_matters():
    words = [
        draw(0, 2).words(4),
        draw(2, 2).words(4),
        draw(0, 2, seed=4).words(4),
        draw(0, 2, purpose="down").words(4),
        draw(0, 2, round=6).words(4),
        Draw(Streams(3), "up", 5, 0, 2, message=1).words(4),
        Draw(Streams(3), "up", 5, 0, 2, np.array([1, 1, 1])).words(4)[1:],
    ]
    assert len({w.tobytes() for w in words}) == len(words)
    assert np.unique(np.concatenate([w.ravel() for w in words])).size == 56


@pytest.mark.drawn(16)
@pytest.mark.parametrize("seed", [0, 9, 2**63 - 1])
@pytest.mark.parametrize(("purpose", "round"), [("x", 0), ("up/shared", 2**31)])
@pytest.mark.parametrize(("first", "workers", "count"), [(3, 1, 8), (0, 5, 9), (10**6, 2, 1)])
@pytest.mark.parametrize(("message", "repetition"), [(0, 0), (2, 0), (0, 3), (2**31, 7)])
def test_it_is_numpys_philox(seed, purpose, round, first, workers, count, message, repetition):
    steps = -(-count // 4)
    philox = np.random.Philox(
        key=np.array([seed, purpose_key(purpose)], np.uint64),
        counter=np.array([first * steps, repetition, round, message], np.uint64),
    )
    expected = philox.random_raw(4 * workers * steps).reshape(workers, -1)[:, :count]
    drawn = Streams(seed).raw(purpose, round, first, workers, count, message, repetition)
    assert np.array_equal(drawn, expected)
    clients = np.repeat(np.arange(first, first + workers), repetition + 1)
    some = Draw(Streams(seed), purpose, round, first, workers, clients, message)
    assert np.array_equal(some.words(count)[repetition :: repetition + 1], expected)
    assert np.array_equal(some.repetitions, list(range(repetition + 1)) * workers)
    if repetition == 0:
        every = Draw(Streams(seed), purpose, round, 0, 1, message=message).block(first, workers)
        assert np.array_equal(every.words(count), expected)


@pytest.mark.parametrize("clients", [[0, 3, 4, 8], [9], list(range(10))])
def test_who_draws_does_not_matter(clients):
    some = Draw(Streams(3), "up", 5, 0, 10, np.array(clients))
    rows = np.arange(7, 17)
    assert np.array_equal(some.subsets(20, 3), draw(0, 10).subsets(20, 3)[clients])
    assert np.array_equal(some.batches(rows[clients], 5), draw(0, 10).batches(rows, 5)[clients])


def test_uniforms_and_shared_words():
    u = draw(0, 4000).uniforms(5)
    assert u.shape == (4000, 5) and u.min() >= 0 and u.max() < 1
    assert stats.kstest(u.ravel(), "uniform").pvalue > 1e-4
    assert np.array_equal(draw(0, 2).shared_words(6), draw(5, 1).shared_words(6))
    assert not np.intersect1d(draw(0, 2).shared_words(6), draw(0, 2).shared_words(6, 1)).size


def test_subsets_are_uniform_over_all_subsets():
    d, k, m = 5, 2, 20000
    subsets = draw(0, m).subsets(d, k)
    assert (np.diff(subsets, axis=1) > 0).all()
    _, counts = np.unique(subsets @ [d, 1], return_counts=True)
    assert counts.size == 10
    assert stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize(("d", "k"), [(1, 1), (7, 7), (300, 10)])
def test_subsets_edge_cases(d, k):
    subsets = draw(0, 3).subsets(d, k)
    assert subsets.shape == (3, k) and subsets.min() >= 0 and subsets.max() < d
    assert all(np.unique(row).size == k for row in subsets)
