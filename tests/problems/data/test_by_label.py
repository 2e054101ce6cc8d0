"""Splits by label: how unlike the workers are, and that nobody's rows are lost."""

from __future__ import annotations

import gzip
import hashlib

import numpy as np
import pytest

import mpisim
from mpisim.core.errors import InputError
from mpisim.problems import PROBLEMS
from mpisim.problems.data.arrange import shuffle
from mpisim.problems.data.by_label import SplitKeys, label_order, read_client_ids
from tests.helpers import columns, run_tables, table


def shares(labels, split, sizes, seed=1, **keys):
    """The share of each label among a worker's rows, (n, labels), all rows being taken once."""
    order = label_order(labels, split, sizes, SplitKeys(**keys), seed)
    assert np.array_equal(np.sort(order), np.arange(len(labels)))
    parts = np.split(labels[order], np.cumsum(sizes))[: len(sizes)]
    kinds = np.unique(labels)
    return np.array([[np.mean(part == c) for c in kinds] for part in parts])


@pytest.mark.parametrize("alpha", [0.5, 3.0, 40.0])
def test_shares_have_the_moments_of_a_dirichlet_distribution(alpha):
    """Mean q_c; variance q_c (1 - q_c) / (alpha + 1), and that of a sample of m rows beside it.

    Few of the rows are taken, so that no label is used up.
    """
    labels = np.random.default_rng(0).choice([3.0, 1.0, 7.0], 400_000, p=[0.2, 0.5, 0.3])
    n, m = 1500, 40
    drawn = shares(labels, "dirichlet", np.full(n, m), alpha=alpha)
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
    kinds = (shares(labels, "pathological", sizes, pieces=pieces) > 0).sum(axis=1)
    assert kinds.max() <= 2 * (pieces or 2) + 1 and kinds.mean() < (pieces or 2) + 1.5


@pytest.mark.parametrize("similarity", [0.0, 0.3, 1.0])
def test_a_share_of_partly_shuffled_rows_is_random_and_the_rest_sorted(similarity):
    """The random ones are the first of split = "shuffled", which is that of similarity 1."""
    sizes = np.array([41, 41, 40, 40])
    labels = np.random.default_rng(0).permutation(np.arange(sizes.sum() + 3) % 10)
    drawn = shares(labels, "partly-shuffled", sizes, similarity=similarity)
    order = label_order(labels, "partly-shuffled", sizes, SplitKeys(similarity=similarity), 1)
    parts = np.split(order, np.cumsum(sizes))[:4]
    k = 12 if similarity == 0.3 else int(similarity * 40)
    random = np.concatenate([p[: len(p) if similarity == 1 else k] for p in parts])
    assert np.array_equal(random, shuffle(len(labels), 1)[: len(random)])
    if similarity < 1:
        rest = labels[np.concatenate([part[k:] for part in parts])]
        assert np.array_equal(rest, np.sort(rest)) and drawn.max() > 0.3


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


def test_images_are_split_by_label(tmp_path):
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

    ids = np.arange(200) % 7
    (tmp_path / "ids").write_text("".join(f"w{i}\n" for i in ids))
    made = PROBLEMS["torch"](**keys, split="natural", client_ids=str(tmp_path / "ids"))
    full = made.loaded(7, 0, 7, 1, np.dtype("float32"))
    part = made.loaded(7, 5, 2, 1, np.dtype("float32"))
    assert full.rows.tolist() == [29] * 4 + [28] * 3 and len(full.label_shares()) == 7
    assert (part.gradients(x) == full.gradients(x)[5:]).all()


LINES = "+1 1:1\n-1 1:2\n+1 1:3\n-1 1:4\n-1 1:5\n+1 1:6\n"
IDS = "carol\nann\ncarol\nbo\nann\ncarol\n"
OF_CLIENT = [[1, 3, 6], [2, 5], [4]]  # carol's, ann's and bo's


def natural(tmp_path, ids=IDS, workers=3, **keys):
    data, names = tmp_path / "six", tmp_path / "ids.gz"
    data.write_text(LINES)
    names.write_bytes(gzip.compress(ids.encode()))
    keys = {"name": "nonconvex-loss", "data": str(data), "client_ids": str(names)} | keys
    return problem(workers=workers, split="natural", **keys)


@pytest.mark.parametrize("name", ["nonconvex-loss", "multinomial-logistic", "least-squares"])
def test_natural_clients_have_their_rows_alone(tmp_path, name):
    """Also from the cache, and in blocks of workers; the gradient at 0 of each is that by hand."""
    keys = natural(tmp_path)["problem"] | {"name": name}
    del keys["workers"], keys["name"]
    made = PROBLEMS[name](**keys)
    for _ in range(2):
        full = made.loaded(3, 0, 3, 1, np.dtype("float64"))
        assert full.rows.tolist() == [3, 2, 1]
    part = made.loaded(3, 1, 2, 1, np.dtype("float64"))
    x = np.full(full.d, 0.1)
    assert np.array_equal(part.gradients(x), full.gradients(x)[1:])
    if name == "least-squares":
        y = np.array([1, -1, 1, -1, -1, 1])
        by_hand = [np.mean([(0.1 * a - y[a - 1]) * a for a in rows]) for rows in OF_CLIENT]
        assert full.label_shares() is None
        assert np.allclose(full.gradients(x)[:, 0] / by_hand, full.gradients(x)[0, 0] / by_hand[0])
    else:
        assert np.allclose(full.label_shares(), [[0, 1], [1, 0], [1, 0]])


def test_the_mark_with_which_spreadsheets_begin_a_file_is_no_part_of_an_id(tmp_path):
    path = tmp_path / "ids"
    path.write_bytes(b"\xef\xbb\xbf" + IDS.encode())
    clients = read_client_ids(str(path))
    assert clients.client.tolist() == [0, 1, 0, 2, 1, 0]
    assert clients.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_run_is_of_these_ids(tmp_path):
    """Other ids are another experiment; bad ones are one line."""
    log = tmp_path / "x.h5"
    run_tables(natural(tmp_path), log)
    assert "clients sha256:" in mpisim.load(log)[0].attrs["problem"]
    with pytest.raises(InputError, match=r"clients sha256"):
        run_tables(natural(tmp_path, IDS.replace("bo", "ann\nbo", 1)[:-6]), log, resume=True)
    for keys, line in (
        ({"workers": 4}, r"problem.workers: 4 .* 3, the clients in "),
        ({"ids": IDS + "dan\n", "workers": 4}, "ids.gz: 7 lines; allowed: 6, an id for each row"),
        ({"client_ids": "nowhere"}, r"problem.client_ids: nowhere: No such file"),
    ):
        with pytest.raises(InputError, match=line):
            run_tables(natural(tmp_path, **keys), log, force=True)
