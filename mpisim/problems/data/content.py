"""The uncompressed content of a data file, and its check against the registry."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path

from mpisim.core.errors import InputError
from mpisim.problems.data import libsvm
from mpisim.problems.data.image_formats import parse_cifar, parse_idx
from mpisim.problems.data.registry import DataFile, Dataset

# By a file's first bytes, not its name: a download may be unpacked and keep its packed name.
_DECOMPRESS: dict[bytes, Callable[[bytes], bytes]] = {
    b"\x1f\x8b": gzip.decompress,
    b"BZh": bz2.decompress,
    b"\xfd7zXZ\x00": lzma.decompress,
}


def read_content(path: Path, source: str | None = None) -> bytes:
    """The uncompressed bytes of a plain, gz, bz2 or xz file; `InputError` if it is damaged.

    ``source`` is the file's name in errors, by default the path.
    """
    source = source or str(path)
    try:
        packed = path.read_bytes()
    except OSError as error:
        raise InputError(f"{source}: {error.strerror or error}; allowed: a readable file") from None
    for magic, decompress in _DECOMPRESS.items():
        if packed.startswith(magic):
            try:
                return decompress(packed)
            except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
                raise InputError(
                    f"{source}: truncated or damaged compressed file ({error}); allowed: plain"
                    " text, or a whole .gz, .bz2 or .xz file"
                ) from None
    return packed


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
    rows, features = shape(dataset, file, content, source)
    if rows != file.rows or features > dataset.features:
        raise InputError(
            f"{source}: {rows} rows and {features} features; the registered {dataset.name} has"
            f" {file.rows} and {dataset.features}"
        )
    return "the registry has no sha256 for it: only rows and features were checked"


def shape(dataset: Dataset, file: DataFile, content: bytes, source: str) -> tuple[int, int]:
    """Rows and features (the largest index of a LibSVM file) of a file's content."""
    if dataset.kind == "libsvm":
        table = libsvm.parse(content, source)
        return table.rows, table.features
    if dataset.kind == "idx":
        array = parse_idx(content, source)
        return len(array), dataset.features
    pixels, _ = parse_cifar(content, source, dataset.kind)
    return len(pixels), dataset.features
