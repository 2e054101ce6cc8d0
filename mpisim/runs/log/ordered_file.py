"""The file below HDF5, written so that it can be read even if the process is killed.

HDF5 writes a flush in the order of addresses, so a reference may reach the disk before the space
that it refers to. Here the writes of a flush are collected and then made in an order in which the
file stays readable after each of them: first new space, which nothing refers to yet; then the end
of the file in the superblock; then names and indices; last, data in existing space and the headers
of the data sets, which hold their lengths.
"""

from __future__ import annotations

import io
import os
from pathlib import Path

NEW, SUPER, REST = 0, 1, 6
RANKS = {b"HEAP": 2, b"GCOL": 3, b"SNOD": 4, b"TREE": 5}  # by HDF5's signatures
SUPERBLOCK = 96  # bytes; version 0, which libver "earliest" writes
END = slice(40, 48)  # its end-of-file address


class OrderedFile(io.RawIOBase):
    """A file object for h5py; reads see every write, the disk only flushed ones."""

    def __init__(self, path: Path):
        self._descriptor = os.open(path, os.O_RDWR)
        self._pending: list[tuple[int, bytes]] = []
        self._position = 0
        self._end = self._committed_end()  # of the file as it is on the disk
        self._size = min(self._end, os.fstat(self._descriptor).st_size)

    def _committed_end(self) -> int:
        return int.from_bytes(os.pread(self._descriptor, SUPERBLOCK, 0)[END], "little")

    def seekable(self) -> bool:
        return True

    readable = writable = seekable

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = start + offset
        return self._position

    def readinto(self, buffer) -> int:
        view = memoryview(buffer).cast("B")
        first, length = self._position, view.nbytes
        there = os.pread(self._descriptor, length, first)
        view[: len(there)] = there
        view[len(there) :] = bytes(length - len(there))
        for position, data in self._pending:
            start, stop = max(first, position), min(first + length, position + len(data))
            if start < stop:
                view[start - first : stop - first] = data[start - position : stop - position]
        self._position += length
        return length

    def write(self, data) -> int:
        content = bytes(data)
        self._pending.append((self._position, content))
        self._position += len(content)
        self._size = max(self._size, self._position)
        return len(content)

    def truncate(self, size: int | None = None) -> int:
        """Set the size that reads see; space reserved on the disk behind it stays."""
        self._size = self._position if size is None else size
        return self._size

    def flush(self) -> None:
        """Make the collected writes."""
        for position, data in self.in_order():
            os.pwrite(self._descriptor, data, position)
        self._pending, self._end = [], self._committed_end()

    def in_order(self) -> list[tuple[int, bytes]]:
        """The collected writes in the order in which they are made."""
        return sorted(self._pending, key=lambda write: self._rank(*write))

    def _rank(self, position: int, data: bytes) -> int:
        if position >= self._end:
            return NEW
        return SUPER if position < SUPERBLOCK else RANKS.get(data[:4], REST)

    def close(self) -> None:
        if not self.closed:
            super().close()  # which flushes
            os.close(self._descriptor)
