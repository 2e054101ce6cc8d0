"""The cache: parsed once, whole or absent, rebuilt when damaged, never a reason to fail."""

from __future__ import annotations

import os

import pytest

from mpisim.core.errors import InputError
from mpisim.problems.data import DataOptions, libsvm, load_shards, prepare, prepared
from mpisim.problems.data import cache as caching
from tests.problems.data.conftest import random_dense, to_text


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "set"
    file.write_text(to_text(*random_dense(40, 9)))
    return file


@pytest.fixture
def parses(monkeypatch):
    """How often text was parsed."""
    calls = []
    parse = libsvm.parse
    monkeypatch.setattr(prepared.formats.libsvm, "parse", lambda *a: calls.append(a) or parse(*a))
    return calls


def rows(options):
    block = load_shards(prepare(options), 0, options.workers)
    return [a.tobytes() for a in (block.data, block.indices, block.indptr, block.labels)]


def test_parsed_once(path, cache, parses):
    first = rows(DataOptions(str(path), 3))
    for workers, bias in ((3, False), (4, False), (3, True)):
        rows(DataOptions(str(path), workers, bias=bias))
    rows(DataOptions(str(path), 3, split="homogeneous", seed=9))  # the same order: as in the file
    assert rows(DataOptions(str(path), 3)) == first
    assert len(parses) == 1
    rows(DataOptions(str(path), 3, "shuffled"))
    rows(DataOptions(str(path), 3, "shuffled", seed=1))
    rows(DataOptions(str(path), 3, scale="row-max-abs"))
    rows(DataOptions(str(path), 3, labels="real"))
    assert len(parses) == 5
    assert not list(cache.glob(".*"))


@pytest.mark.parametrize("damage", [lambda c: c[: len(c) // 2], lambda c: b"rubbish" * 999])
@pytest.mark.parametrize("when", ["before", "between"])
def test_damaged_is_rebuilt(path, cache, parses, damage, when):
    options = DataOptions(str(path), 3)
    good, prepared = rows(options), prepare(options)
    (entry,) = cache.glob("rows-*.h5")
    entry.write_bytes(damage(entry.read_bytes()))
    if when == "before":
        assert rows(options) == good
    else:
        block = load_shards(prepared, 0, 3)
        assert block.data.tobytes() == good[0] and block.labels.tobytes() == good[3]
    assert len(parses) == 2
    assert rows(options) == good and len(parses) == 2


def test_every_damaged_byte_is_noticed_or_harmless(path, cache):
    """Flip one byte anywhere: reading gives the right rows or `Damaged`, never other rows."""
    options = DataOptions(str(path), 3)
    good, nnz = rows(options), prepare(options).nnz
    (entry,) = cache.glob("rows-*.h5")
    full = entry.read_bytes()
    noticed = 0
    for place in range(0, len(full), max(1, len(full) // 150)):
        entry.write_bytes(full[:place] + bytes([full[place] ^ 0x55]) + full[place + 1 :])
        try:
            assert caching.shape(entry)[:3] == (40, 9, nnz)
            table = caching.read_rows(entry, 0, 39)
        except caching.Damaged:
            noticed += 1
        else:
            assert [table.data.tobytes(), table.labels.tobytes()] == [good[0], good[3]]
    assert noticed > 10


def test_deleted_between(path, cache):
    options = DataOptions(str(path), 3)
    good, prepared = rows(options), prepare(options)
    prepared.cache.unlink()
    assert load_shards(prepared, 0, 3).data.tobytes() == good[0]
    prepared.cache.unlink()
    path.write_text("1 1:1\n2 1:1\n3 1:2\n")
    with pytest.raises(InputError, match="changed while it was in use"):
        load_shards(prepared, 0, 3)


def test_another_content_of_the_same_size_and_time_is_noticed(path, cache, tmp_path):
    before, stat = prepare(DataOptions(str(path), 3)).sha256, path.stat()
    content = path.read_text()
    swapped = content.replace("-7.0", "-8.0")
    assert swapped != content and len(swapped) == len(content)
    path.write_text(swapped)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert path.stat().st_mtime_ns == stat.st_mtime_ns
    assert prepare(DataOptions(str(path), 3)).sha256 != before
    (tmp_path / "new").write_text(content)
    os.utime(tmp_path / "new", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    os.replace(tmp_path / "new", path)
    assert prepare(DataOptions(str(path), 3)).sha256 == before


def test_unwritable_cache(path, tmp_path, monkeypatch, parses):
    good = rows(DataOptions(str(path), 3, bias=True))
    (tmp_path / "file").touch()
    monkeypatch.setenv("MPISIM_CACHE", str(tmp_path / "file" / "below"))
    options = DataOptions(str(path), 3, bias=True)
    assert prepare(options).cache is None
    assert rows(options) == good
