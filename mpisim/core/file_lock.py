"""A lock that processes hold while they write something, also on several hosts."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
from pathlib import Path

from mpisim.core.atomic_file import leads_to


class Locked(Exception):
    """Another process holds the lock; the message says which one, if it is known."""


class FileLock:
    """Holds ``path``, a file of its own, locked in a ``with`` statement.

    The system releases the lock when the process dies. The file is removed at the end; one that a
    killed process left is used again. Where the file system has no locks, nothing is locked.
    Raises `Locked` where another process holds it, and `OSError` where it cannot be written.
    """

    def __init__(self, path: Path):
        self.path = path

    def __enter__(self) -> FileLock:
        while True:
            self._descriptor = os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)
            try:
                self._lock()
                # the holder may have removed the file just before it released the lock
                if leads_to(self.path, self._descriptor):
                    return self
            except BaseException:
                os.close(self._descriptor)
                raise
            os.close(self._descriptor)

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            if leads_to(self.path, self._descriptor):
                os.unlink(self.path)
        os.close(self._descriptor)

    def _lock(self) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._descriptor, 200, 0).decode(errors="replace")
            raise Locked("".join(c for c in holder if c.isprintable())) from None
        except OSError:
            pass  # a file system without locks
        with contextlib.suppress(OSError):  # the lock counts, not what is in the file
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{socket.gethostname()}, pid {os.getpid()}\n".encode(), 0)
