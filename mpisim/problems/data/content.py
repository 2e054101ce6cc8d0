"""The uncompressed content of a data file, and its check against the registry."""

from __future__ import annotations

import bz2
import hashlib
import lzma
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from mpisim.core.errors import InputError
from mpisim.problems.data import libsvm
from mpisim.problems.data.image_formats import parse_cifar, parse_idx
from mpisim.problems.data.registry import DataFile, Dataset

_CHUNK = 1 << 20


class _Stream(Protocol):
    """One compressed stream; bz2, lzma and zlib have this interface."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, /) -> bytes: ...


# By a file's first bytes, not its name: a download may be unpacked and keep its packed name.
# With the padding that the format allows after a stream: zeros, in multiples of so many bytes.
_STREAMS: dict[bytes, tuple[Callable[[], _Stream], int]] = {
    b"\x1f\x8b": (lambda: zlib.decompressobj(wbits=31), 1),
    b"BZh": (bz2.BZ2Decompressor, 0),
    b"\xfd7zXZ\x00": (lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ), 4),
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
    for magic, (stream, padding) in _STREAMS.items():
        if packed.startswith(magic):
            try:
                return _decompress(packed, stream, padding)
            except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
                raise InputError(
                    f"{source}: truncated or damaged compressed file ({error}); allowed: plain"
                    " text, or a whole .gz, .bz2 or .xz file; get or copy it again"
                ) from None
    return packed


def _decompress(packed: bytes, new_stream: Callable[[], _Stream], padding: int) -> bytes:
    """The content of all streams in a file, one after another.

    The functions of the standard library drop whatever follows the first stream and is damaged.
    """
    view, at, parts = memoryview(packed), 0, []
    while at < len(view):
        start, stream = at, new_stream()
        while not stream.eof:
            if at == len(view):
                raise EOFError(f"the stream that begins at byte {start} has no end")
            chunk = bytes(view[at : at + _CHUNK])
            at += len(chunk)
            try:
                parts.append(stream.decompress(chunk))
            except (OSError, ValueError, zlib.error, lzma.LZMAError) as error:
                raise ValueError(f"the stream that begins at byte {start}: {error}") from None
        at = _after_padding(packed, at - len(stream.unused_data), padding)
    return b"".join(parts)


def _after_padding(packed: bytes, at: int, unit: int) -> int:
    """The place after the zeros at ``at``, of which there may be a multiple of ``unit``."""
    zeros = re.compile(rb"\0*").match(packed, at)
    end = zeros.end() if zeros and unit else at
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
