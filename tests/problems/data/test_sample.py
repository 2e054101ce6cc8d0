"""The generated sample: the same bytes everywhere, and worth training on."""

from __future__ import annotations

import numpy as np
import pytest

from mpisim.core.errors import InputError
from mpisim.problems.data import libsvm
from mpisim.problems.data.find import ROOT, lookup
from mpisim.problems.data.sample import GROUPS, sample_text, write_sample
from tests.problems.data.conftest import to_dense


def test_committed_file_is_what_the_generator_makes(tmp_path):
    committed = (ROOT / "datasets" / "sample").read_bytes()
    write_sample(tmp_path / "new" / "sample")
    assert (tmp_path / "new" / "sample").read_bytes() == committed
    assert len(committed) < 150_000


def test_shape_is_that_of_a_small_a9a():
    table = libsvm.parse(sample_text().encode(), "sample")
    registered = lookup("sample")
    assert (table.rows, table.features) == (1600, 123) == (registered.rows, registered.features)
    assert len(table.data) == registered.files[0].nnz
    assert (table.data == 1).all() and set(table.labels) == {-1.0, 1.0}
    assert 0.2 < (table.labels == 1).mean() < 0.28
    assert 13.5 < len(table.data) / table.rows < 14
    dense = to_dense(table.data, table.indices, table.indptr, 123)
    for group in np.split(dense, np.cumsum(GROUPS)[:-1], axis=1):
        assert group.sum(axis=1).max() == 1  # one-hot, at times missing


def test_labels_can_be_learnt():
    """Least squares on the first half predicts the second far better than chance."""
    table = libsvm.parse(sample_text(3000).encode(), "sample")
    dense = to_dense(table.data, table.indices, table.indptr, 123)
    x = np.linalg.lstsq(dense[:1500], table.labels[:1500], rcond=1e-6)[0]
    scores, labels = dense[1500:] @ x, table.labels[1500:]
    ranks = scores.argsort().argsort()[labels == 1] + 1
    positive = (labels == 1).sum()
    area = (ranks.sum() - positive * (positive + 1) / 2) / (positive * (1500 - positive))
    assert area > 0.7  # area under the ROC curve; 0.5 is chance


@pytest.mark.parametrize(("rows", "features"), [(1, 1), (10, 5), (30, 14), (50, 1000)])
def test_other_sizes(rows, features):
    table = libsvm.parse(sample_text(rows, features, seed=4).encode(), "sample")
    assert table.rows == rows and table.features <= features


def test_seed_and_errors(tmp_path):
    assert sample_text(20, seed=0) != sample_text(20, seed=1)
    with pytest.raises(InputError, match="at least 1"):
        write_sample(tmp_path / "x", rows=0)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="can be written"):
        write_sample(tmp_path / "file" / "x")
    with pytest.raises(InputError, match="can be written"):
        write_sample(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
