"""Write files whole or not at all, so that they survive a power cut, and lock them.

HDF5 does not survive a failed write: the file is lost, and the process may crash when it closes
it. So HDF5 files are built in memory and written as bytes.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import json
import os
import re
import secrets
import socket
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import h5py
import numpy as np

from mpisim.core.errors import InputError, MpisimError, OutputError

T = TypeVar("T")
Content = bytes | Iterable[bytes]  # of a file, or its parts, to be written one after another
NUMBERS = re.compile(r"\[\n\s*([^\[\]{}\"]*?)\s*\]")  # a list in JSON, one number a line
CANNOT = (errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)  # not on this file system


def image(build: Callable[[h5py.File], None], oldest: str = "earliest") -> bytes:
    """The bytes of the HDF5 file that ``build`` fills.

    ``oldest`` is the earliest HDF5 format to use; from "v110" on, metadata has checksums.
    """
    memory = io.BytesIO()
    with h5py.File(memory, "w", libver=(oldest, "v110")) as file:
        build(file)
    return memory.getvalue()


@contextlib.contextmanager
def writing(
    path: Path, kind: type[MpisimError] = OutputError, what: str = "cannot be written"
) -> Iterator[None]:
    """Turns an `OSError` into one line of this ``kind``: ``what`` is wrong with ``path``."""
    try:
        yield
    except OSError as error:
        raise kind(f"{path}: {what}: {error.strerror or error}") from None


def write_atomic(
    path: Path, content: Content, keep: Path | None = None, shared: bool = False, mode: int = 0o666
) -> None:
    """Write ``.NAME.new``, sync it, rename it, and sync the folder. Raises `OSError`.

    An existing file is kept as ``keep``, or replaced. What a killed process leaves, the next call
    replaces. With ``shared``, other processes may write the same file at the same time, so each
    uses its own temporary name.
    """
    os.close(create_atomic(path, content, keep, shared, mode=mode))


def create_atomic(
    path: Path,
    content: Content,
    keep: Path | None = None,
    shared: bool = False,
    require: Callable[[], None] = lambda: None,
    mode: int = 0o666,
) -> int:
    """`write_atomic`; returns the file's descriptor, for reading and writing.

    require : called at the start, and before the file gets its name; the file at ``path`` stays as
        it is if that raises

    Two processes that write the same file without a lock may replace each other's temporary file.
    A process whose file has been replaced raises, and leaves the other's alone.
    """
    require()
    unique = f".{secrets.token_hex(8)}" if shared else ""
    temporary = path.with_name(f".{path.name}{unique}.new")
    temporary.unlink(missing_ok=True)
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, mode)
    try:
        position = 0
        for part in (content,) if isinstance(content, bytes) else content:
            write_at(descriptor, part, position)
            position += len(part)
        os.fsync(descriptor)
        require()
        if not leads_to(temporary, descriptor):
            raise OSError(errno.EBUSY, "another process is writing it")
        if keep is not None:
            with contextlib.suppress(FileNotFoundError):
                os.replace(path, keep)
                sync_folder(path.parent)
        os.replace(temporary, path)
        sync_folder(path.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            if leads_to(temporary, descriptor):
                temporary.unlink()
        os.close(descriptor)
        raise
    return descriptor


def write_file(
    path: Path, content: bytes, kind: type[MpisimError] = OutputError, shared: bool = False
) -> None:
    """`write_atomic`, and the folder before it; one line of this ``kind`` where that fails."""
    with writing(path, kind):
        make_folder(path.parent)
        write_atomic(path, content, shared=shared)


def try_write(path: Path, content: bytes, mode: int = 0o666) -> bool:
    """Write a file that several processes may write, of a cache; False if it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, content, shared=True, mode=mode)
    except OSError:
        return False
    return True


def write_at(descriptor: int, data: bytes, position: int) -> None:
    """Write all of ``data``: a single call may write less. Raises `OSError`."""
    view = memoryview(data)
    while len(view):
        written = os.pwrite(descriptor, view, position)
        view, position = view[written:], position + written


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable; raises `OSError`."""
    try:
        descriptor = os.open(folder, os.O_DIRECTORY)
    except PermissionError:  # a folder that may be written but not listed
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in CANNOT:
            raise
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it, durably; raises `OSError`."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for one in missing:
        sync_folder(one.parent)


def leads_to(path: Path, descriptor: int) -> bool:
    """Whether ``path`` still names the open file; raises `OSError`."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except (FileNotFoundError, NotADirectoryError):
        return False


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file whole or not at all; raises `OutputError`.

    NumPy's numbers and arrays become JSON's; any other object becomes text. A list of numbers is
    one line.
    """

    def encode(value: Any) -> Any:
        return value.tolist() if isinstance(value, np.generic | np.ndarray) else str(value)

    text = json.dumps(content, indent=1, default=encode) + "\n"
    text = NUMBERS.sub(lambda match: f"[{' '.join(match[1].split())}]", text)
    with writing(path):
        write_atomic(path, text.encode(), shared=True)


def read_json(path: Path, build: Callable[[Any], T], otherwise: str, missing: str = "") -> T:
    """What ``build`` makes of the content of a JSON file.

    `InputError` where the file cannot be read, which ends with ``missing``, and, with the text
    ``otherwise``, where its content is something else.
    """
    try:
        return build(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}{missing}") from None
    except (InputError, AttributeError, ValueError, LookupError, RecursionError, TypeError):
        raise InputError(f"{path}: {otherwise}") from None


class Locked(Exception):
    """Another process holds the lock; the message says which one, if it is known."""


class FileLock:
    """Holds ``path``, a file of its own, locked in a ``with`` statement.

    The system releases the lock when the process dies. The file is removed at the end; one that a
    killed process left is used again. Where the file system has no locks, nothing is locked.
    Raises `Locked` where another process holds it, and `OSError` where it cannot be written, or is
    no regular file of this name alone: what a link leads to must not be overwritten.
    """

    def __init__(self, path: Path):
        self.path = path

    def __enter__(self) -> FileLock:
        while True:
            flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
            bad = OSError(errno.ELOOP, f"{self.path.name} is a link, or no regular file")
            try:
                self._descriptor = os.open(self.path, flags, 0o666)
            except OSError as error:
                raise bad if error.errno in (errno.ELOOP, errno.EISDIR) else error from None
            with contextlib.ExitStack() as stack:
                stack.callback(os.close, self._descriptor)
                status = os.fstat(self._descriptor)
                if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
                    raise bad
                self._lock()
                # the holder may have removed the file just before it released the lock
                if leads_to(self.path, self._descriptor):
                    stack.pop_all()
                    return self

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
            return  # a file system without locks
        with contextlib.suppress(OSError):  # the lock counts, not what is in the file
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{socket.gethostname()}, pid {os.getpid()}\n".encode(), 0)


def require_log_name(path: Path, where: str) -> Path:
    """The path of a log; `InputError` where its name does not end in .h5: nothing would find it."""
    # what is a folder, say, or too long, is refused as such
    file = os.path.isfile(path) or not os.path.lexists(path)
    if file and path.suffix != ".h5":
        raise InputError(f"{where}: {str(path)!r} does not end in .h5")
    return path
