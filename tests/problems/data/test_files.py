"""LibSVM text, MNIST and CIFAR files; the split of images with a homogeneity."""

import bz2
import gzip
import hashlib
import lzma
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpisim.core.errors import InputError
from mpisim.problems.data import content as reading
from mpisim.problems.data import find as registering
from mpisim.problems.data import libsvm
from mpisim.problems.data.arrange import split_images
from mpisim.problems.data.content import read_content, verify
from mpisim.problems.data.find import find, lookup
from tests.helpers import some_of
from tests.problems.data.conftest import to_dense

GOOD = b"+1 1:0.5 3:-2\n-1 2:1e-3\n"
FORMS = {
    "plain": GOOD,
    "no last newline": GOOD[:-1],
    "trailing and double spaces": b"+1  1:0.5   3:-2  \n-1 2:1e-3 \n",
    "tabs": b"+1\t1:0.5\t3:-2\n-1\t2:1e-3\t\n",
    "CRLF": b"+1 1:0.5 3:-2\r\n-1 2:1e-3\r\n",
    "blank lines": b"\n+1 1:0.5 3:-2\n\n  \n-1 2:1e-3\n\n",
    "comments": b"# made by hand\n+1 1:0.5 3:-2 # \xc3\xa9 nan:inf\n-1 2:1e-3\n",
    "other notations": b"1.000000 1:.5 3:-2.\n-1.0E0 2:+1.0E-03\n",
}


@pytest.mark.parametrize("content", FORMS.values(), ids=FORMS)
def test_forms(content):
    table = libsvm.parse(content, "f")
    assert (table.rows, table.features) == (2, 3)
    assert [table.data.dtype, table.indices.dtype, table.indptr.dtype] == ["f8", "i4", "i8"]
    dense = to_dense(table.data, table.indices, table.indptr, 3)
    np.testing.assert_array_equal(dense, [[0.5, 0, -2], [0, 1e-3, 0]])
    np.testing.assert_array_equal(table.labels, [1, -1])


REFUSED = Path(__file__).with_name("refused.txt").read_text(encoding="utf-8").splitlines()[1:]


@pytest.mark.parametrize("case", REFUSED)
def test_malformed_lines_are_named(case):
    line, what = case.split(" -> ")
    line = line.encode().decode("unicode_escape").encode("latin-1")
    with pytest.raises(InputError) as error:
        libsvm.parse(b"+1 1:1\n\n" + line + b"\n-1 1:1\n", "some/file")
    message = str(error.value)
    assert message.startswith(f"some/file:3: {what}"), message
    assert "; allowed: " in message and "\n" not in message and len(message) < 200


@given(st.one_of(st.binary(max_size=40), st.text("0123456789+-.eE: \t\r\n").map(str.encode)))
@settings(max_examples=300, deadline=None)
def test_any_bytes_parse_or_are_refused_and_both_parsers_agree(content):
    try:
        table = libsvm.parse(content, "f")
    except InputError as error:
        assert str(error).startswith("f:") and "\n" not in str(error)
        if "no samples" not in str(error):
            with pytest.raises(InputError):
                libsvm.scan(content, "f")
    else:
        libsvm.scan(content, "f")  # what the fast parser takes, the slow one takes
        assert np.isfinite(table.data).all() and table.rows > 0


PACK = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "plain": bytes}


@pytest.mark.parametrize("how", PACK)
def test_compressed_files(tmp_path, how):
    """Several streams too, as `cat one.bz2 two.bz2` makes them; xz and gzip allow zeros between."""
    path, stream = tmp_path / "any-name", PACK[how](GOOD)  # the content tells how, not the name
    path.write_bytes(stream * 3)
    assert read_content(path) == GOOD * 3
    if how in ("gz", "xz"):
        path.write_bytes(stream + bytes(8) + stream + bytes(4))
        assert read_content(path) == GOOD * 2


def flipped(stream, place):
    return stream[:place] + bytes([stream[place] ^ 255]) + stream[place + 1 :]


DAMAGE = {
    "magic": lambda stream: flipped(stream, 1),
    "data": lambda stream: flipped(stream, len(stream) // 2),
    "checksum": lambda stream: flipped(stream, len(stream) - 5),
    "head": lambda stream: stream[:3],
    "last byte": lambda stream: stream[:-1],
    "no stream": lambda stream: b"what is no stream",
}


@pytest.mark.parametrize("how", ["gz", "bz2", "xz"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_streams_are_named(tmp_path, how, damage):
    """Also the second one of a file, which is not the end of the first."""
    path, stream = tmp_path / "f", PACK[how](GOOD)
    for before in (b"", stream) if damage in ("data", "checksum", "last byte") else (stream,):
        path.write_bytes(before + DAMAGE[damage](stream))
        message = rf"truncated or damaged .*the stream that begins at byte {len(before)}"
        with pytest.raises(InputError, match=message) as error:
            read_content(path)
        assert str(path) in str(error.value) and "\n" not in str(error.value)


SMALL = "a1a a5a a9a a9a.t mushrooms phishing duke leu colon-cancer german.numer svmguide3 splice"
SMALL += " mg_scale housing_scale mpg_scale sample"


@some_of(4, name=SMALL.split())
def test_real_files_are_those_of_the_registry(name, need_data):
    need_data(name)
    dataset, path = lookup(name), find(name)
    [file], content = dataset.files, read_content(path)
    assert verify(dataset, file, content, str(path)) == "sha256 agrees with the registry"
    table = libsvm.parse(content, str(path))
    assert (table.rows, len(table.data)) == (file.rows, file.nnz)
    assert table.features <= dataset.features
    if not file.labels.startswith("real"):
        counts = dict(zip(*np.unique(table.labels, return_counts=True), strict=True))
        assert counts == dict(tuple(map(float, one.split(":"))) for one in file.labels.split(","))


def idx(array: np.ndarray) -> bytes:
    sizes = b"".join(size.to_bytes(4, "big") for size in array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes()


def some(shape, top=256, seed=0):
    return np.random.default_rng(seed).integers(0, top, shape).astype(np.uint8)


@given(st.binary(max_size=60))
@settings(max_examples=100, deadline=None)
def test_idx_is_total(content):
    assert np.array_equal(reading.parse_idx(idx(some((2, 3, 4))), "f"), some((2, 3, 4)))
    for bytes_ in (content, b"\0\0\x08" + content, b"\0\0\x08\1" + content):
        try:
            array = reading.parse_idx(bytes_, "f")
        except InputError:
            continue
        assert idx(array) == bytes_


@pytest.mark.parametrize(("kind", "classes"), reading.CIFAR_CLASSES.items())
def test_cifar(kind, classes):
    labels = np.stack([some(6, top, seed=top) for top in classes], axis=1)
    pixels = some((6, 3072))
    got, got_labels = reading.parse_cifar(np.hstack([labels, pixels]).tobytes(), "f", kind)
    np.testing.assert_array_equal(got, pixels.reshape(6, 3, 32, 32))
    np.testing.assert_array_equal(got_labels, labels[:, -1])


@pytest.mark.parametrize("content", [b"", bytes(3072), bytes(3073 * 2 - 1), b"\x0a" + bytes(3072)])
def test_bad_cifar(content):
    with pytest.raises(InputError, match=r"^f: .*allowed"):
        reading.parse_cifar(content, "f", "cifar10")


def test_load_images(here, monkeypatch):
    """Of a registered set of 3 training and 2 test images."""
    parts = {part: (some((n, 28, 28)), some(n, 10)) for part, n in (("train", 3), ("test", 2))}
    files = []
    for name, array in ((f"{part}-{i}", parts[part][i]) for part in parts for i in (0, 1)):
        content = idx(array)
        (here / f"{name}.gz").write_bytes(gzip.compress(content))
        digest = hashlib.sha256(content).hexdigest()
        files.append(registering.DataFile(name, name, len(array), None, "", digest, ()))
    dataset = registering.Dataset("small", "idx", 784, tuple(files))
    monkeypatch.setattr(registering, "registry", lambda: {"small": dataset})
    for part, wanted in parts.items():
        for array, right in zip(reading.load_images("small", part), wanted, strict=True):
            np.testing.assert_array_equal(array, right)
    (here / "test-0.gz").write_bytes(gzip.compress(idx(some((2, 28, 28), seed=1))))
    with pytest.raises(InputError, match="sha256"):
        reading.load_images("small", "test")
    (here / "train-0.gz").unlink()
    with pytest.raises(InputError, match="data fetch small"):
        reading.load_images("small")


def of_workers(parts):
    return [parts.images[a:b] for a, b in pairwise(parts.bounds)]


@pytest.mark.parametrize(("used", "n"), [(50, 4), (53, 6), (7, 6), (100, 1)])
@pytest.mark.parametrize("mix", ["workers", "samples"])
def test_all_different_or_all_alike(used, n, mix):
    different = of_workers(split_images(120, used, n, 0.0, mix, 5))
    together = np.concatenate(different)
    assert len(np.unique(together)) == len(together) < used  # D_0 stays with nobody
    sizes = {len(part) for part in different}
    assert max(sizes) - min(sizes) <= 1 and min(sizes) >= used // (n + 1)
    alike = split_images(120, used, n, 1.0, mix, 5)
    first = of_workers(alike)[0]
    assert not np.isin(first, together).any()
    for part, other in zip(of_workers(alike), different, strict=True):
        shorter = len(first) if mix == "workers" else len(other)
        assert np.array_equal(part, first[:shorter])
        if mix == "workers":
            assert len(first) + len(together) == used
    assert alike.common.all() or (mix == "samples" and used % (n + 1))


def test_how_many_workers_have_the_common_part():
    n, p = 4000, 0.75
    parts = split_images(3 * n + 3, 3 * n + 3, n, p, "workers", 1)
    assert abs(parts.common.mean() - p) < 4.5 * np.sqrt(p * (1 - p) / n)
    part = of_workers(parts)
    common = {tuple(part[i]) for i in np.flatnonzero(parts.common)}
    others = np.concatenate([part[i] for i in np.flatnonzero(~parts.common)])
    assert len(common) == 1 and len(np.unique(others)) == len(others)
    assert not np.isin(others, list(common.pop())).any()
