"""MNIST and CIFAR files, and the split of images with a homogeneity."""

import gzip
import hashlib
import lzma
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpisim.core.errors import InputError
from mpisim.problems.data import content as reading
from mpisim.problems.data import find as registering
from mpisim.problems.data.arrange import split_images


def idx(array: np.ndarray) -> bytes:
    sizes = b"".join(size.to_bytes(4, "big") for size in array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes()


def some(shape, top=256, seed=0):
    return np.random.default_rng(seed).integers(0, top, shape).astype(np.uint8)


@pytest.mark.parametrize("shape", [(5,), (3, 28, 28), (2, 3, 4, 5), (0, 28, 28)])
def test_idx(tmp_path, shape):
    array = some(shape)
    (tmp_path / "f.gz").write_bytes(gzip.compress(idx(array)))
    np.testing.assert_array_equal(
        reading.parse_idx(reading.read_content(tmp_path / "f.gz"), "f"), array
    )


@given(st.binary(max_size=60))
@settings(max_examples=100, deadline=None)
def test_idx_is_total(content):
    for bytes_ in (content, b"\0\0\x08" + content):
        try:
            array = reading.parse_idx(bytes_, "f")
        except InputError:
            continue
        assert idx(array) == bytes_


@pytest.mark.parametrize(("kind", "classes"), reading.CIFAR_CLASSES.items())
def test_cifar(tmp_path, kind, classes):
    labels = np.stack([some(6, top, seed=top) for top in classes], axis=1)
    pixels = some((6, 3072))
    (tmp_path / "f.xz").write_bytes(lzma.compress(np.hstack([labels, pixels]).tobytes()))
    content = reading.read_content(tmp_path / "f.xz")
    got, got_labels = reading.parse_cifar(content, "f.xz", kind)
    np.testing.assert_array_equal(got, pixels.reshape(6, 3, 32, 32))
    np.testing.assert_array_equal(got_labels, labels[:, -1])


@pytest.mark.parametrize("content", [b"", bytes(3072), bytes(3073 * 2 - 1), b"\x0a" + bytes(3072)])
def test_bad_cifar(content):
    with pytest.raises(InputError, match=r"^f: .*allowed"):
        reading.parse_cifar(content, "f", "cifar10")


@pytest.fixture
def small_mnist(here, monkeypatch):
    """A registered set of 3 training and 2 test images."""
    files = []
    for part, rows in (("train", 3), ("test", 2)):
        for what, shape in (("images", (rows, 28, 28)), ("labels", (rows,))):
            content = idx(some(shape, 10, rows))
            (here / f"{part}-{what}.gz").write_bytes(gzip.compress(content))
            digest = hashlib.sha256(content).hexdigest()
            name = f"{part}-{what}"
            files.append(registering.DataFile(name, name, rows, None, "", digest, ()))
    dataset = registering.Dataset("small", "idx", 784, tuple(files))
    monkeypatch.setattr(registering, "registry", lambda: {"small": dataset})
    return here


def test_load_images(small_mnist):
    for part, rows in (("train", 3), ("test", 2)):
        pixels, labels = reading.load_images("small", part)
        np.testing.assert_array_equal(pixels, some((rows, 28, 28), 10, rows))
        np.testing.assert_array_equal(labels, some((rows,), 10, rows))
    (small_mnist / "test-images.gz").write_bytes(gzip.compress(idx(some((2, 28, 28)))))
    with pytest.raises(InputError, match="sha256"):
        reading.load_images("small", "test")
    (small_mnist / "train-images.gz").unlink()
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
