"""Workers' rows against a dense reading; their cache is whole or absent, and no reason to fail."""

import itertools
import os

import numpy as np
import pytest

from mpisim.core.errors import InputError
from mpisim.core.rng import Streams
from mpisim.problems.data import cache as caching
from mpisim.problems.data import prepared
from mpisim.problems.data.by_label import SplitKeys
from mpisim.problems.data.prepared import DataOptions, load_shards, prepare
from tests.helpers import calls_of, some_of
from tests.problems.data.conftest import random_dense, scaled, to_dense, to_text

pytestmark = pytest.mark.usefixtures("cache")
N, D = 23, 7


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "set"
    file.write_text(to_text(*random_dense(N, D)))
    return file


@pytest.fixture
def options(path):
    return DataOptions(str(path), 3)


@pytest.fixture
def parses(monkeypatch):
    """How often text was parsed."""
    return calls_of(monkeypatch, prepared.formats.libsvm, "parse")


def rows(options, prepared=None):
    block = load_shards(prepared or prepare(options), 0, options.workers)
    return [a.tobytes() for a in (block.data, block.indices, block.indptr, block.labels)]


def test_parsed_once(path, options, cache, parses):
    first = rows(options)
    for workers, keys in ((3, {}), (4, {}), (3, {"bias": True}), (3, {"split": "homogeneous"})):
        rows(DataOptions(str(path), workers, seed=9, **keys))  # the same order: as in the file
    assert rows(options) == first and len(parses) == 1
    shuffled, unlike = {"split": "shuffled"}, {"split": "dirichlet", "split_keys": SplitKeys(0.3)}
    others = [shuffled, shuffled | {"seed": 1}, {"scale": "row-max-abs"}, {"labels": "real"}]
    others += [unlike, unlike | {"split_keys": SplitKeys(30.0)}, unlike | {"seed": 1}]
    for other in others * 2:
        rows(DataOptions(str(path), 3, **other))
    assert len(parses) == 1 + len(others)
    assert not list(cache.glob(".*"))


DAMAGE = {
    "half": lambda entry, content: entry.write_bytes(content[: len(content) // 2]),
    "rubbish": lambda entry, content: entry.write_bytes(b"rubbish" * 999),
    "deleted": lambda entry, content: entry.unlink(),
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("between", [False, True])
def test_damaged_is_rebuilt(path, options, cache, parses, damage, between):
    """Before a run, or between its two looks at the cache."""
    good, prepared = rows(options), prepare(options)
    (entry,) = cache.glob("rows-*.h5")
    DAMAGE[damage](entry, entry.read_bytes())
    assert rows(options, prepared if between else None) == good
    assert rows(options) == good and len(parses) == 2
    entry.unlink()
    path.write_text("1 1:1\n2 1:1\n3 1:2\n")
    with pytest.raises(InputError, match="changed while it was in use"):
        load_shards(prepared, 0, 3)


def test_every_damaged_byte_is_noticed_or_harmless(options, cache):
    """Flip one byte anywhere: reading gives the right rows or `Damaged`, never other rows."""
    good, nnz = rows(options), prepare(options).nnz
    (entry,) = cache.glob("rows-*.h5")
    full = entry.read_bytes()
    noticed = 0
    for place in range(0, len(full), max(1, len(full) // 150)):
        entry.write_bytes(full[:place] + bytes([full[place] ^ 0x55]) + full[place + 1 :])
        try:
            assert caching.shape(entry)[:3] == (N, D, nnz)
            table = caching.read_rows(entry, 0, 21)
        except caching.Damaged:
            noticed += 1
        else:
            assert [table.data.tobytes(), table.labels.tobytes()] == [good[0], good[3]]
    assert noticed > 10


def test_another_content_of_the_same_size_and_time_is_noticed(path, options, tmp_path):
    before, stat, content = prepare(options).sha256, path.stat(), path.read_text()
    swapped = content.replace("-7.0", "-8.0")
    assert swapped != content and len(swapped) == len(content)
    path.write_text(swapped)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert path.stat().st_mtime_ns == stat.st_mtime_ns and prepare(options).sha256 != before
    (tmp_path / "new").write_text(content)
    os.utime(tmp_path / "new", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    os.replace(tmp_path / "new", path)
    assert prepare(options).sha256 == before


def reference(options: DataOptions) -> list[tuple[np.ndarray, np.ndarray]]:
    """(rows, labels) of every worker, from the dense matrix."""
    matrix, labels = random_dense(N, D)
    if options.labels == "binary":
        labels = np.where(labels == labels.max(), 1.0, -1.0)
    matrix = scaled(matrix, options.scale)
    order = np.arange(N)
    if options.split == "shuffled":
        order = Streams(options.seed).generator("data/shuffle").permutation(N)
    if options.split == "sorted-by-norm":
        order = np.argsort([np.sqrt(sum(v * v for v in row)) for row in matrix], kind="stable")
    n = options.workers
    if options.split == "homogeneous":
        parts = [order] * n
    elif options.remainder == "drop":
        parts = np.split(order[: n * (N // n)], n)
    else:
        parts = np.array_split(order, n)
    if options.bias:
        matrix = np.hstack([np.ones((N, 1)), matrix])
    return [(matrix[part], labels[part]) for part in parts]


SPLITS = ["contiguous", "shuffled", "sorted-by-norm", "homogeneous"]
SCALES = ["none", "row-max-abs", "feature-max-abs"]


@some_of(16, split=SPLITS, remainder=["drop", "spread"], scale=SCALES)
@some_of(16, writable=[True, False], workers=[7, N], bias=[False, True])
def test_blocks_against_dense(
    path, split, remainder, scale, writable, workers, bias, tmp_path, monkeypatch
):
    if not writable:
        (tmp_path / "file").touch()
        monkeypatch.setenv("MPISIM_CACHE", str(tmp_path / "file" / "cache"))
    options = DataOptions(str(path), workers, split, remainder, bias, scale, seed=3)
    prepared = prepare(options)
    assert (prepared.cache is not None) == writable == (prepared.table is None)
    assert (prepared.rows, prepared.features) == (N, D + bias)
    assert prepared.nnz == np.count_nonzero(random_dense(N, D)[0])
    expected = reference(options)
    for cuts in ([0, workers], [0, 1, 7], [0, 2, 3, 5, 7], list(range(8)), [0, 0, 4, 4, 7]):
        for a, b in itertools.pairwise(cuts):
            block = load_shards(prepared, a, b - a)
            dense = to_dense(block.data, block.indices, block.indptr, block.features)
            ranges = zip(block.starts, block.stops, expected[a:b], strict=True)
            for start, stop, (matrix, labels) in ranges:
                np.testing.assert_array_equal(dense[start:stop], matrix)
                np.testing.assert_array_equal(block.labels[start:stop], labels)
    dtypes = [block.data, block.indices, block.indptr, block.labels, block.starts]
    assert [a.dtype for a in dtypes] == ["f8", "i4", "i8", "f8", "i8"]


def test_registered_names_have_their_features(path, here):
    assert prepare(DataOptions(str(path), 2, bias=True)).features == D + 1
    for name, largest, features in (("a1a", 5, 123), ("splice", 99, 99)):  # 123 and 60
        (here / name).write_text(f"1 {largest}:1\n-1 2:1\n")
        assert prepare(DataOptions(name, 2, any_content=True)).features == features
        assert prepare(DataOptions(str(here / name), 2)).features == largest


OTHERS = {"a1a": "sha256 .* instead of eb54c45f", "covtype": "2 rows, .* instead of 581012 rows"}


@pytest.mark.parametrize("name", OTHERS)
def test_another_content_under_a_registered_name_is_refused(name, here):
    (here / name).write_text("1 5:1\n-1 2:1\n")
    line = rf"{name}: is not the registered {name} \({OTHERS[name]}"
    for any_content in (None, False):
        with pytest.raises(InputError, match=line):
            prepare(DataOptions(name, 2, any_content=any_content))
