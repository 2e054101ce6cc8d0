"""The plain loops of `make bench-peers` compute what mpisim computes, from the same draws."""

from itertools import islice

import numpy as np
import pytest

from benchmarks import against
from benchmarks.peers.experiments import DIANA, FEDERATED, MARINA, loop, tables
from mpisim.core.rng import Draw, Streams
from tests.helpers import run_tables

ROUNDS = 40


class Addressed:
    """mpisim's draws, as the loops ask for them."""

    def __init__(self, seed: int):
        self.streams = Streams(seed)

    def coin(self, k):
        return Draw(self.streams, "coin", k, 0, 1).uniforms(1)[0, 0]

    def subsets(self, k, n, d, size):
        return Draw(self.streams, "up", k, 0, n).subsets(d, size)

    def uniforms(self, k, n, d):
        return Draw(self.streams, "up", k, 0, n).uniforms(d)

    def batches(self, k, step, n, m, b):
        return Draw(self.streams, "batch", k, 0, n, None, step).batches(np.full(n, m), b)


@pytest.mark.parametrize("name", [MARINA, DIANA, *FEDERATED[:2]])
def test_the_same_iterates(name):
    item = tables(name, "sample", rounds=ROUNDS, wire="float64", seed=3)
    x = next(islice(loop(name, item, Addressed(3)), ROUNDS - 1, None))
    assert np.abs(x).max() > 0.01
    np.testing.assert_allclose(run_tables(item).x, x, rtol=1e-9, atol=1e-12)


def test_a_ratio_of_five_percent_is_seen_and_none_is_not():
    """40 blocks with 5% noise, heavy-tailed: a planted 1.05 is outside of 1, often enough."""
    noise = np.random.default_rng(1).standard_t(3, (2000, 40)) * 0.03
    equal = np.array([against.interval(row) for row in noise])
    assert np.mean((equal[:, 1] <= 1) & (equal[:, 2] >= 1)) > 0.95
    planted = np.array([against.interval(row + np.log(1.05)) for row in noise])
    assert np.mean(planted[:, 1] > 1) > 0.95


def test_a_side_runs_the_experiments_of_its_checkout(tmp_path):
    with against.Side(against.HERE) as side:
        for i in range(len(against.EXPERIMENTS)):
            assert (side.measure(against.experiment_file(tmp_path, i), 2) > 0).all()
