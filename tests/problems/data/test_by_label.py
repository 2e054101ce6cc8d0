"""Splits by label: how unlike the workers are, and that nobody's rows are lost."""

from __future__ import annotations

import numpy as np
import pytest

import mpisim
from mpisim.problems import PROBLEMS
from mpisim.problems.data.by_label import label_order
from tests.helpers import columns, run_tables, table


def shares(labels, split, sizes, alpha=None, pieces=None, seed=1):
    """The share of each label among a worker's rows, (n, labels), all rows being taken once."""
    order = label_order(labels, split, sizes, alpha, pieces, seed)
    assert np.array_equal(np.sort(order), np.arange(len(labels)))
    parts = np.split(labels[order], np.cumsum(sizes))[: len(sizes)]
    return np.array([[np.mean(part == c) for c in np.unique(labels)] for part in parts])


@pytest.mark.parametrize("alpha", [0.5, 3.0, 40.0])
def test_shares_have_the_moments_of_a_dirichlet_distribution(alpha):
    """Mean q_c; variance q_c (1 - q_c) / (alpha + 1), and that of a sample of m rows beside it.

    Few of the rows are taken, so that no label is used up.
    """
    labels = np.random.default_rng(0).choice([3.0, 1.0, 7.0], 400_000, p=[0.2, 0.5, 0.3])
    n, m = 1500, 40
    drawn = shares(labels, "dirichlet", np.full(n, m), alpha)
    q = np.array([np.mean(labels == c) for c in (1, 3, 7)])
    expected = q * (1 - q) * (1 / (alpha + 1) + alpha / (alpha + 1) / m)
    assert np.abs(drawn.mean(axis=0) - q).max() < 5 * np.sqrt(expected / n).max()
    assert np.abs(drawn.var(axis=0) / expected - 1).max() < 0.2


@pytest.mark.parametrize(("pieces", "rest"), [(None, 0), (1, 3), (3, 7)])
def test_pathological_workers_have_few_labels(pieces, rest):
    """As many as pieces, and one more for a piece that has two."""
    n, m = 10, 24
    sizes = np.full(n, m) + (np.arange(n) < rest)
    labels = np.random.default_rng(0).permutation(np.arange(sizes.sum()) * 10 // sizes.sum())
    kinds = (shares(labels, "pathological", sizes, None, pieces) > 0).sum(axis=1)
    assert kinds.max() <= 2 * (pieces or 2) + 1 and kinds.mean() < (pieces or 2) + 1.5


def problem(**keys):
    return table({"name": "gd", "stepsize": 0.1}, workers=6, rounds=2, problem=keys)


def test_runs_depend_on_the_seed_and_say_the_shares(tmp_path):
    log = tmp_path / "x.h5"
    losses = {}
    for seed, alpha in ((1, 0.3), (2, 0.3), (1, 30.0)):
        tables = problem(name="logistic", split="dirichlet", alpha=alpha, remainder="spread")
        tables["run"]["seed"] = seed
        run_tables(tables, log, force=True)
        losses[seed, alpha] = columns(log)["grad_norm_sq"][-1]
    assert len(set(losses.values())) == 3
    result = mpisim.load(log)[0].workers
    shares = np.array([result["label_0_share"], result["label_1_share"]])
    assert shares.shape == (2, 6) and np.allclose(shares.sum(axis=0), 1)


def test_images_are_split_by_label():
    pytest.importorskip("torch")
    keys = {"data": "generated", "model": "linear", "samples": 200, "pool": 8, "device": "cpu"}
    made = PROBLEMS["torch"](**keys, split="pathological", pieces=1)
    full = made.loaded(10, 0, 10, 1, np.dtype("float32"))
    part = made.loaded(10, 3, 4, 1, np.dtype("float32"))
    shares = full.label_shares()
    assert shares.shape == (10, 10) and np.allclose(shares.sum(axis=1), 1)
    assert (shares > 0).sum(axis=1).max() <= 3
    x = full.initial_point()
    assert (part.gradients(x) == full.gradients(x)[3:7]).all()
    plain = PROBLEMS["torch"](**keys).loaded(10, 0, 10, 1, np.dtype("float32"))
    assert plain.label_shares() is None
