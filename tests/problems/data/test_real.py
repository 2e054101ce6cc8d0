"""Real files against the registry, where they are here (MPISIM_DATA)."""

from __future__ import annotations

import numpy as np
import pytest

from mpisim.core.errors import InputError
from mpisim.problems.data import DataOptions, libsvm, load_shards, prepare
from mpisim.problems.data.content import load_images, read_cifar, read_content, verify
from mpisim.problems.data.find import find, locate, lookup, registry

pytestmark = pytest.mark.real
SMALL = [
    "a1a",
    "a5a",
    "a9a",
    "a9a.t",
    "mushrooms",
    "phishing",
    "duke",
    "leu",
    "colon-cancer",
    "german.numer",
    "svmguide3",
    "splice",
    "mg_scale",
    "housing_scale",
    "mpg_scale",
    "sample",
]


@pytest.mark.parametrize("name", SMALL)
def test_shape_entries_and_labels(name, need_data):
    need_data(name)
    dataset, path = lookup(name), find(name)
    file = dataset.files[0]
    content = read_content(path)
    assert verify(dataset, file, content, str(path)) == "sha256 agrees with the registry"
    table = libsvm.parse(content, str(path))
    assert (table.rows, len(table.data)) == (file.rows, file.nnz)
    assert table.features <= dataset.features
    if file.labels.startswith("real"):
        low, high = file.labels.removeprefix("real [").removesuffix("]").split(",")
        assert (table.labels.min(), table.labels.max()) == (float(low), float(high))
    else:
        expected = dict(tuple(map(float, part.split(":"))) for part in file.labels.split(","))
        values, counts = np.unique(table.labels, return_counts=True)
        assert dict(zip(values, counts, strict=True)) == expected


@pytest.mark.parametrize("name", ["mushrooms", "german.numer", "phishing"])
def test_marina_shards(name, need_data):
    """Five contiguous blocks of floor(N / 5) rows behind a bias column, as in MARINA's code."""
    need_data(name)
    dataset = lookup(name)
    options = DataOptions(name, 5, bias=True)
    shards = load_shards(prepare(options), 1, 2)
    size = dataset.rows // 5
    assert shards.features == dataset.features + 1
    assert (shards.stops - shards.starts).tolist() == [size, size]
    assert set(shards.labels) == {-1.0, 1.0}
    table = libsvm.parse(read_content(find(name)), name)
    expected = table.data[table.indptr[size] : table.indptr[3 * size]]
    assert len(shards.data) == len(expected) + 2 * size
    np.testing.assert_array_equal(shards.data[shards.indices > 0], expected)
    assert (shards.data[shards.indptr[:-1]] == 1).all() and shards.indices[0] == 0


def test_regression_needs_real_labels(need_data):
    need_data("mg_scale")
    with pytest.raises(InputError, match="exactly two"):
        prepare(DataOptions("mg_scale", 2))
    assert prepare(DataOptions("mg_scale", 2, labels="real")).rows == 1385


def test_mnist():
    if any(locate(f.file) is None for f in registry()["mnist"].files):
        pytest.skip("mnist is not here (MPISIM_DATA)")
    pixels, labels = load_images("mnist", "test")
    assert pixels.shape == (10000, 28, 28) and np.count_nonzero(pixels) == 1511219
    assert np.bincount(labels).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


def test_cifar_records():
    path = locate("cifar10_test_first1000.bin")
    if path is None:
        pytest.skip("no CIFAR-10 records here (MPISIM_DATA)")
    pixels, labels = read_cifar(path)
    assert pixels.shape == (1000, 3, 32, 32) and np.count_nonzero(pixels) == 3064576
    assert labels[:4].tolist() == [3, 8, 8, 0]  # cat, ship, ship, airplane
