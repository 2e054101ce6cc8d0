"""The journal of a run: its rows in a file that only grows, from which its HDF5 log is written.

A record is 4 bytes with the length of its content, 4 with the CRC-32 of the content (both little
endian), and the content. The first record describes the columns, as JSON; each further one holds
rows, as they are in memory. What a crash leaves after the last good record is not read.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mpisim.core.files import create_atomic, leads_to, write_at
from mpisim.runs.log.schema import Schema, row_type

FORMAT = 1
HEAD = struct.Struct("<II")
RECORD_ROWS = 4096  # rows in a record, at most
BATCH = 1 << 20  # bytes of rows that are read at a time, about


class Mark(NamedTuple):
    """The rows of a log on which a checkpoint relies: the first ones.

    rows : their number
    digest : of these rows, by `digest`
    attributes : of the root of the log
    """

    rows: int
    digest: str
    attributes: dict[str, Any]

    def text(self) -> str:
        """For a checkpoint, as JSON."""
        return json.dumps(self._asdict(), default=lambda value: value.tolist())

    @classmethod
    def of_text(cls, text: str) -> Mark:
        """The inverse of `text`; raises `ValueError` or `TypeError` for what cannot be a mark."""
        mark = cls(**json.loads(text))
        if not isinstance(mark.rows, int) or not isinstance(mark.attributes, dict):
            raise TypeError("its mark of the log cannot be read")
        return mark


class Journal:
    """The journal of a run that goes on; an existing file of that name is replaced.

    It gets its name when it is on the disk, with the rows that it starts from (an array of
    `row_type`). All methods raise `OSError`.
    """

    def __init__(self, path: Path, schema: Schema, rows: np.ndarray):
        self.path, self._type = path, row_type(schema)
        self.rows, self._hash = len(rows), _hash(self._type)
        self._hash.update(rows.tobytes())
        parts = (rows[i : i + RECORD_ROWS] for i in range(0, len(rows), RECORD_ROWS))
        content = itertools.chain([_header(schema)], (part.tobytes() for part in parts))
        self._descriptor = create_atomic(path, map(_record, content))
        self._end = os.fstat(self._descriptor).st_size

    def append(self, rows: np.ndarray) -> None:
        """Write a record of rows of `row_type`, at least one."""
        record = _record(rows.tobytes())
        write_at(self._descriptor, record, self._end)
        self._end, self.rows = self._end + len(record), self.rows + len(rows)
        self._hash.update(rows.tobytes())

    def sync(self) -> None:
        """Make all rows durable."""
        os.fsync(self._descriptor)

    def digest(self) -> str:
        """`digest` of all rows."""
        return self._hash.hexdigest()

    def batches(self) -> Iterator[np.ndarray]:
        """All rows, about a megabyte at a time."""
        rows = 0
        for batch in _batches(self._descriptor, self._type):
            rows += len(batch)
            yield batch
        if rows != self.rows:
            raise OSError(None, f"of {self.rows} rows {rows} can be read again")

    def is_here(self) -> bool:
        """Whether the path still leads to this journal."""
        return leads_to(self.path, self._descriptor)

    def close(self, remove: bool) -> None:
        """Close it, and remove the file if nobody needs it any more."""
        if remove and self.is_here():
            os.unlink(self.path)
        os.close(self._descriptor)


def path_for(log: Path) -> Path:
    """The path of a log's journal."""
    return log.with_name(log.name + ".journal")


def read(log: Path, schema: Schema) -> np.ndarray | None:
    """The rows in the journal of a log, up to the first record that is not whole, of `row_type`.

    None where there is no journal, or one with other columns. Raises `OSError`.
    """
    try:
        descriptor = os.open(path_for(log), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        if next(_records(descriptor), b"") != _header(schema):
            return None
        batches = _batches(descriptor, kind := row_type(schema))
        return np.concatenate([np.empty(0, kind), *batches])
    finally:
        os.close(descriptor)


def digest(rows: np.ndarray) -> str:
    """The sha256 of an array of `row_type`, and of the type."""
    total = _hash(rows.dtype)
    total.update(rows.tobytes())
    return total.hexdigest()


def _hash(kind: np.dtype) -> Any:
    return hashlib.sha256(repr(kind.descr).encode())


def _header(schema: Schema) -> bytes:
    return json.dumps({"journal": FORMAT, "columns": row_type(schema).descr}).encode()


def _record(content: bytes) -> bytes:
    return HEAD.pack(len(content), zlib.crc32(content)) + content


def _records(descriptor: int) -> Iterator[bytes]:
    """The contents of the records, up to the first that is not whole."""
    position, size = 0, os.fstat(descriptor).st_size
    while position + HEAD.size < size:
        length, checksum = HEAD.unpack(os.pread(descriptor, HEAD.size, position))
        position += HEAD.size
        # a record of zeros is space that a file system reserved, and never filled
        if not 0 < length <= size - position:
            return
        content = os.pread(descriptor, length, position)
        position += length
        if len(content) != length or zlib.crc32(content) != checksum:
            return
        yield content


def _batches(descriptor: int, kind: np.dtype) -> Iterator[np.ndarray]:
    """The rows of all records after the first, in portions of about `BATCH` bytes."""
    batch = bytearray()
    for content in itertools.islice(_records(descriptor), 1, None):
        if len(content) % kind.itemsize:
            break
        batch += content
        if len(batch) >= BATCH:
            yield np.frombuffer(batch, kind)
            batch = bytearray()
    if batch:
        yield np.frombuffer(batch, kind)
