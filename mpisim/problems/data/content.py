"""What is in data files: read, unpacked, and checked against the registry; and sets of images.

Sources of the image formats: Y. LeCun, "The MNIST database" (idx: big-endian magic 0, 0, type,
dimensions, then sizes, then values); A. Krizhevsky, "The CIFAR-10 dataset" (records of label bytes
and 3 x 1024 pixels).
"""

from __future__ import annotations

import bz2
import hashlib
import lzma
import re
import zlib
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from mpisim.core.errors import InputError
from mpisim.core.machine import ReadingBudget, gigabytes
from mpisim.problems.data import find, libsvm
from mpisim.problems.data.find import DataFile, Dataset
from mpisim.problems.data.sample import sample_images

CIFAR_CLASSES = {"cifar10": (10,), "cifar100": (20, 100)}  # one entry per label byte
_PIXELS = 3 * 32 * 32
_CHUNK = 1 << 12  # bytes of a compressed file at a time: they may become 45,000 times as many
_RATIO = 50  # of a content to its compressed file, above what text and images have

# By a file's first bytes, not its name: a download may be unpacked and keep its packed name.
# With the padding that the format allows after a stream: zeros, in multiples of so many bytes.
_STREAMS: dict[bytes, tuple[Callable[[], Any], int]] = {
    b"\x1f\x8b": (lambda: zlib.decompressobj(wbits=31), 1),
    b"BZh": (bz2.BZ2Decompressor, 0),
    b"\xfd7zXZ\x00": (lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ), 4),
}
DAMAGED = (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError)


def read_content(path: Path, source: str | None = None) -> bytes:
    """The uncompressed bytes of a plain, gz, bz2 or xz file; `InputError` if it is damaged, or
    expands too far for `require_content`.

    ``source`` is the file's name in errors, by default the path.
    """
    source = source or str(path)
    try:
        packed = path.read_bytes()
    except OSError as error:
        raise InputError(f"{source}: {error.strerror or error}; allowed: a readable file") from None
    for magic, (stream, padding) in _STREAMS.items():
        if packed.startswith(magic):
            try:
                return _decompress(packed, stream, padding, source)
            except DAMAGED as error:
                raise InputError(
                    f"{source}: truncated or damaged compressed file ({error}); allowed: plain"
                    " text, or a whole .gz, .bz2 or .xz file; get or copy it again"
                ) from None
    return packed


def require_content(size: int, packed: int, source: str) -> None:
    """`InputError` if ``size`` bytes are more than a file of ``packed`` bytes may become."""
    if size > (limit := max(ReadingBudget().bytes, _RATIO * packed)):
        raise InputError(
            f"{source}: {packed:,} bytes that expand to more than {gigabytes(limit)};"
            " MPISIM_READ_GIGABYTES sets more"
        )


def _decompress(packed: bytes, new_stream: Callable[[], Any], padding: int, source: str) -> bytes:
    """The content of all streams in a file, one after another.

    The functions of the standard library drop whatever follows the first stream and is damaged.
    """
    view, at, parts, size = memoryview(packed), 0, [], 0
    while at < len(view):
        start, stream = at, new_stream()
        while not stream.eof:
            if at == len(view):
                raise EOFError(f"the stream that begins at byte {start} has no end")
            chunk = bytes(view[at : at + _CHUNK])
            at += len(chunk)
            try:
                parts.append(stream.decompress(chunk))
                size += len(parts[-1])
            except DAMAGED as error:
                raise ValueError(f"the stream that begins at byte {start}: {error}") from None
            require_content(size, len(packed), source)
        at = _after_padding(packed, at - len(stream.unused_data), padding)
    return b"".join(parts)


def _after_padding(packed: bytes, at: int, unit: int) -> int:
    """The place after the zeros at ``at``, of which there may be a multiple of ``unit``."""
    end = re.compile(rb"\0*").match(packed, at).end() if unit else at  # type: ignore[union-attr]
    return end if (end - at) % max(unit, 1) == 0 else at


def sha256(content: bytes | memoryview) -> str:
    """Hexadecimal sha256."""
    return hashlib.sha256(content).hexdigest()


def verify(dataset: Dataset, file: DataFile, content: bytes, source: str) -> str:
    """Say what was checked; `InputError` if ``content`` is not that of the registered file.

    Compares the sha256 if the registry has one, else rows and features.
    """
    if file.sha256 is not None:
        digest = sha256(content)
        if digest != file.sha256:
            raise InputError(
                f"{source}: sha256 of the uncompressed content is {digest}; the registered"
                f" {dataset.name} has {file.sha256}"
            )
        return "sha256 agrees with the registry"
    rows, features = shape(dataset, content, source)
    if rows != file.rows or features > dataset.features:
        raise InputError(
            f"{source}: {rows} rows and {features} features; the registered {dataset.name} has"
            f" {file.rows} and {dataset.features}"
        )
    return "the registry has no sha256 for it: only rows and features were checked"


def shape(dataset: Dataset, content: bytes, source: str) -> tuple[int, int]:
    """Rows and features (the largest index of a LibSVM file) of a file's content."""
    if dataset.kind == "libsvm":
        table = libsvm.parse(content, source)
        return table.rows, table.features
    if dataset.kind == "idx":
        array = parse_idx(content, source)
        return len(array), dataset.features
    pixels, _ = parse_cifar(content, source, dataset.kind)
    return len(pixels), dataset.features


# images


def parse_idx(content: bytes, source: str) -> np.ndarray:
    """The array in an idx file of unsigned bytes; ``source`` names the file in an `InputError`."""
    if len(content) < 4 or content[:3] != b"\x00\x00\x08" or not 1 <= content[3] <= 4:
        raise InputError(
            f"{source}: magic {content[:4].hex(' ') or 'missing'}; allowed: an idx file of unsigned"
            " bytes (00 00 08 and 1 to 4 dimensions)"
        )
    head = 4 + 4 * content[3]
    sizes = [int.from_bytes(content[i : i + 4], "big") for i in range(4, head, 4)]
    if len(content) < head or len(content) != head + prod(sizes):
        raise InputError(
            f"{source}: {len(content)} bytes; allowed: {head} + {' x '.join(map(str, sizes))} as"
            " its header says (truncated?)"
        )
    return np.frombuffer(content, np.uint8, offset=head).reshape(sizes)


def parse_cifar(content: bytes, source: str, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Images (rows, 3, 32, 32) and labels (rows,), uint8, in a CIFAR file.

    ``kind`` is a key of CIFAR_CLASSES; the labels are the finest ones, the last byte of several.
    ``source`` names the file in an `InputError`.
    """
    classes = CIFAR_CLASSES[kind]
    size = len(classes) + _PIXELS
    if not content or len(content) % size:
        raise InputError(
            f"{source}: {len(content)} bytes; allowed: a positive multiple of {size}, the size of"
            " a record (truncated?)"
        )
    records = np.frombuffer(content, np.uint8).reshape(-1, size)
    for byte, count in enumerate(classes):
        bad = np.flatnonzero(records[:, byte] >= count)
        if len(bad):
            raise InputError(
                f"{source}: label {records[bad[0], byte]} in record {bad[0]}; allowed: 0 to"
                f" {count - 1}"
            )
    return records[:, len(classes) :].reshape(-1, 3, 32, 32), records[:, len(classes) - 1]


def load_images(name: str, part: str = "train") -> tuple[np.ndarray, np.ndarray]:
    """Images and labels of ``part`` (train or test) of a registered image set.

    images : shape (rows, 28, 28) for mnist, (rows, 3, 32, 32) for cifar, uint8
    labels : shape (rows,), uint8; for CIFAR-100 the 100 fine ones

    Raises `InputError` if the set is unknown, missing, or damaged.
    """
    dataset = find.lookup(name)
    if dataset is None or dataset.kind == "libsvm":
        names = ", ".join(n for n, d in find.registry().items() if d.kind != "libsvm")
        raise InputError(f"data {name!r}: not an image set; allowed: {names}")
    if part not in ("train", "test"):
        raise InputError(f"data {name!r}: no part {part!r}; allowed: train, test")
    contents = []
    for file in (f for f in dataset.files if f.part.startswith(part)):
        path = find.find_file(dataset, file)
        if path is None:
            raise find.missing(name)
        contents.append((read_content(path), str(path)))
        verify(dataset, file, *contents[-1])
    if dataset.kind == "idx":
        images, labels = (parse_idx(*c) for c in contents)
        return images, labels
    blocks = [parse_cifar(*c, dataset.kind) for c in contents]
    return np.concatenate([b[0] for b in blocks]), np.concatenate([b[1] for b in blocks])


def load_pixels(name: str) -> tuple[np.ndarray, str]:
    """The training images as rows, shape (rows, pixels), uint8, and their sha256.

    ``name`` is a registered image set, a path to an idx file of images, or "sample", a generated
    set. Raises `InputError` as `load_images` does.
    """
    if name == "sample":
        images = sample_images()
    elif find.is_path(name):
        path = Path(name).expanduser()
        images = parse_idx(read_content(path), str(path))
        if images.ndim < 2 or not images.size:
            raise InputError(f"{name}: an idx file of shape {images.shape}; allowed: one of images")
    else:
        images, _ = load_images(name)
    rows = images.reshape(len(images), -1)
    return rows, sha256(np.ascontiguousarray(rows).data)
