"""The file below HDF5, written so that it can be read even if the process is killed.

HDF5 writes a flush in the order of addresses, so a reference may reach the disk before the space
that it refers to. Here the writes of a flush are collected and then made in an order in which the
file stays readable after each of them: first new space, which nothing refers to yet; then the end
of the file in the superblock; then names and indices; last, data in existing space and the headers
of the data sets, which hold their lengths.

HDF5 does not survive a failed write either: it may crash when it closes the file. So it never sees
one. Its calls collect, and `OrderedFile.commit` writes outside of them.
"""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager

from mpisim.core.atomic_file import reserve, write_at

NEW, SUPER, REST = 0, 1, 6
RANKS = {b"HEAP": 2, b"GCOL": 3, b"SNOD": 4, b"TREE": 5}  # by HDF5's signatures
SUPERBLOCK = 96  # bytes; version 0, which libver "earliest" writes
END = slice(40, 48)  # its end-of-file address
NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


class OrderedFile(io.RawIOBase):
    """A file object for h5py over an open file; reads see every write, the disk committed ones.

    After a failure, other than one to reserve space, nothing is written any more: what a failed
    write or sync left on the disk is not known, and a second try may succeed without it.
    """

    def __init__(self, descriptor: int):
        self.descriptor = descriptor
        self.error: OSError | None = None  # the first failure
        self._pending: list[tuple[int, bytes]] = []
        self._position = 0
        self._end = self._committed_end()  # of the file as it is on the disk
        self._size = min(self._end, os.fstat(descriptor).st_size)

    def _committed_end(self) -> int:
        return int.from_bytes(os.pread(self.descriptor, SUPERBLOCK, 0)[END], "little")

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
        there = self._read(first, length)
        view[: len(there)] = there
        view[len(there) :] = bytes(length - len(there))
        for position, data in self._pending:
            start, stop = max(first, position), min(first + length, position + len(data))
            if start < stop:
                view[start - first : stop - first] = data[start - position : stop - position]
        self._position += length
        return length

    def _read(self, position: int, length: int) -> bytes:
        try:
            return os.pread(self.descriptor, length, position)
        except OSError as error:
            self.error = self.error or error
            raise

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

    def commit(self) -> None:
        """Make the collected writes; raises `OSError`."""
        with self._watched():
            for position, data in self.in_order():
                write_at(self.descriptor, data, position)
            self._pending, self._end = [], self._committed_end()

    def sync(self) -> None:
        """Make what was committed durable; raises `OSError`."""
        with self._watched():
            os.fsync(self.descriptor)

    def reserve(self, size: int) -> None:
        """Make sure that the file can grow to ``size`` bytes; raises `OSError`."""
        with self._watched(NO_ROOM):
            reserve(self.descriptor, size)

    def cut(self, size: int) -> None:
        """Give back reserved space behind ``size`` bytes; raises `OSError`."""
        with self._watched():
            os.ftruncate(self.descriptor, size)

    def in_order(self) -> list[tuple[int, bytes]]:
        """The collected writes in the order in which they are made."""
        return sorted(self._pending, key=lambda write: self._rank(*write))

    def _rank(self, position: int, data: bytes) -> int:
        if position >= self._end:
            return NEW
        return SUPER if position < SUPERBLOCK else RANKS.get(data[:4], REST)

    @contextmanager
    def _watched(self, harmless: tuple[int, ...] = ()) -> Iterator[None]:
        """Raises the first failure again, and notes this one if there is one."""
        if self.error is not None:
            raise self.error
        try:
            yield
        except OSError as error:
            if error.errno not in harmless:
                self.error = error
            raise

    def close(self) -> None:
        if not self.closed:
            super().close()
            os.close(self.descriptor)
