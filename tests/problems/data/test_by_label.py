"""Splits by label: how unlike the workers are, and that nobody's rows are lost."""

import gzip
import hashlib

import numpy as np
import pytest

import mpisim
from mpisim.core.errors import InputError
from mpisim.problems import PROBLEMS
from mpisim.problems.data.arrange import shuffle
from mpisim.problems.data.by_label import SplitKeys, label_order
from mpisim.runs.experiment import parse
from tests.helpers import run_tables, table


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


@pytest.mark.parametrize(("similarity", "k"), [(0.0, 0), (0.49, 20), (1.0, 41)])
def test_a_share_of_partly_shuffled_rows_is_random_and_the_rest_sorted(similarity, k):
    """The random ones, k of a worker, are the first of split = "shuffled"."""
    sizes = np.array([41, 41, 40, 40])
    labels = np.random.default_rng(0).permutation(np.arange(sizes.sum() + 3) % 10)
    order = label_order(labels, "partly-shuffled", sizes, SplitKeys(similarity=similarity), 1)
    assert np.array_equal(np.sort(order), np.arange(len(labels)))
    parts = np.split(order, np.cumsum(sizes))[:4]
    random = np.concatenate([part[:k] for part in parts])
    assert np.array_equal(random, shuffle(len(labels), 1)[: len(random)])
    rest = labels[np.concatenate([part[k:] for part in parts])]
    assert np.array_equal(rest, np.sort(rest))


def test_images_are_split_by_label(tmp_path):
    pytest.importorskip("torch")
    keys = {"data": "generated", "model": "linear", "samples": 200, "pool": 8, "device": "cpu"}
    (tmp_path / "ids").write_text("".join(f"w{i % 7}\n" for i in range(200)))
    unlike = {"pathological": {"pieces": 1}, "natural": {"client_ids": str(tmp_path / "ids")}}
    for split, own in unlike.items():
        made = PROBLEMS["torch"](**keys, split=split, **own)
        full, part = (made.loaded(7, i, 7 - i, 1, np.dtype("float32")) for i in (0, 3))
        shares, x = full.label_shares(), full.initial_point()
        assert shares.shape == (7, 10) and np.allclose(shares.sum(axis=1), 1)
        assert (part.gradients(x) == full.gradients(x)[3:]).all()
        assert split == "natural" or (shares > 0).sum(axis=1).max() <= 3
    assert full.rows.tolist() == [29] * 4 + [28] * 3
    plain = PROBLEMS["torch"](**keys).loaded(7, 0, 7, 1, np.dtype("float32"))
    assert plain.label_shares() is None


LINES = "+1 1:1\n-1 1:2\n+1 1:3\n-1 1:4\n-1 1:5\n+1 1:6\n"
IDS = "carol\nann\ncarol\nbo\nann\ncarol\n"
OF_CLIENT = [[1, 3, 6], [2, 5], [4]]  # carol's, ann's and bo's
MARK = b"\xef\xbb\xbf"  # with which spreadsheets begin a file; no part of an id


def natural(tmp_path, ids=IDS, workers=3, **keys):
    data, names = tmp_path / "six", tmp_path / "ids.gz"
    data.write_text(LINES)
    names.write_bytes(gzip.compress(MARK + ids.encode()))
    keys = {"name": "nonconvex-loss", "data": str(data), "client_ids": str(names)} | keys
    keys |= {"split": "natural"}
    return table({"name": "gd", "stepsize": 0.1}, workers=workers, rounds=2, problem=keys)


@pytest.mark.parametrize("name", ["nonconvex-loss", "multinomial-logistic", "least-squares"])
def test_natural_clients_have_their_rows_alone(tmp_path, name, cache):
    """Also from the cache, and in blocks of workers; the gradient at 0 of each is that by hand."""
    spec = parse(natural(tmp_path, name=name)).problem
    for _ in range(2):
        full, part = (spec.loaded(3, i, 3 - i, 1, np.dtype("float64")) for i in (0, 1))
        assert full.rows.tolist() == [3, 2, 1]
    x = np.full(full.d, 0.1)
    assert np.array_equal(part.gradients(x), full.gradients(x)[1:])
    if name == "least-squares":
        y = np.array([1, -1, 1, -1, -1, 1])
        by_hand = [np.mean([(0.1 * a - y[a - 1]) * a for a in rows]) for rows in OF_CLIENT]
        assert full.label_shares() is None
        assert np.allclose(full.gradients(x)[:, 0] / by_hand, full.gradients(x)[0, 0] / by_hand[0])
    else:
        assert np.allclose(full.label_shares(), [[0, 1], [1, 0], [1, 0]])


def test_a_run_is_of_these_ids(tmp_path):
    """Other ids are another experiment; bad ones are one line."""
    log = tmp_path / "x.h5"
    run_tables(natural(tmp_path), log)
    [read] = mpisim.load(log)
    digest = hashlib.sha256(MARK + IDS.encode()).hexdigest()
    assert f"clients sha256:{digest}" in read.attrs["problem"]
    assert [read.workers[f"label_{c}_share"].tolist() for c in (0, 1)] == [[0, 1, 1], [1, 0, 0]]
    with pytest.raises(InputError, match=r"clients sha256"):
        run_tables(natural(tmp_path, IDS.replace("bo", "ann\nbo", 1)[:-6]), log, resume=True)
    for keys, line in (
        ({"workers": 4}, r"problem.workers: 4 .* 3, the clients in "),
        ({"ids": IDS + "dan\n", "workers": 4}, "ids.gz: 7 lines; allowed: 6, an id for each row"),
        ({"client_ids": "nowhere"}, r"problem.client_ids: nowhere: No such file"),
    ):
        with pytest.raises(InputError, match=line):
            run_tables(natural(tmp_path, **keys), log, force=True)
