"""Reads files that anyone may have written, in a process of its own: HDF5 crashes on some of them.

Only regular files are opened, and nothing outside them is read. HDF5 follows links to other files,
and takes the data of a data set from them.
"""

from __future__ import annotations

import errno
import faulthandler
import multiprocessing
import os
import resource
import signal
import stat
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeVar

import h5py

from mpisim.comm.job import reset_crash_handlers
from mpisim.core.errors import InputError

CPU_SECONDS = 60  # far more than reading takes; ends a process that loops
WALL_SECONDS = 120.0  # also for one that waits, for a disk that does not answer, say
TOGETHER = 64  # files that one process reads, in far less than the seconds that it has

# What may be raised by reading a file with unexpected content.
DAMAGE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
T = TypeVar("T")


class Crashed(InputError):
    """The process that read a file died, or had to be ended."""


def run_isolated(path: Path | str, read: Callable[[], T]) -> T:
    """Call ``read`` in a process of its own; returns what it returns and raises what it raises.

    The result must be picklable. Raises `Crashed`, one line that names ``path``, if the process
    dies or does not end. If no process can be started, for want of memory, ``read`` is called in
    this one.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(read, sender))
    with receiver:
        with sender, warnings.catch_warnings():
            # Python warns of locks that other threads hold; reading a file needs none of them
            warnings.simplefilter("ignore", DeprecationWarning)
            try:
                process.start()
            except OSError:
                return read()
        try:
            if not receiver.poll(WALL_SECONDS):
                raise Crashed(f"{path}: cannot be read within {WALL_SECONDS:g} s")
            returned, value = receiver.recv()
        except EOFError:
            process.join()
            code = process.exitcode or 0
            how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            raise Crashed(f"{path}: the file is damaged: HDF5 crashed on it ({how})") from None
        finally:
            process.kill()
            process.join(1.0)  # while a disk does not answer, nothing ends a process
    if not returned:
        raise value
    return value


def run_each(paths: Sequence[Path], read: Callable[[Path], T]) -> list[T | InputError]:
    """``read`` of each path, or its `InputError`; one process reads many of them."""

    def attempt(path: Path) -> T | InputError:
        try:
            return read(path)
        except InputError as error:
            return error

    results: list[T | InputError] = []
    for first in range(0, len(paths), TOGETHER):
        some = paths[first : first + TOGETHER]
        try:
            results += run_isolated(some[0], partial(list, map(attempt, some)))
        except Crashed as error:  # alone, each is read whatever the others do
            results += [r for p in some for r in run_each([p], read)] if some[1:] else [error]
    return results


@contextmanager
def opened(path: Path) -> Iterator[h5py.File]:
    """An HDF5 file, to be read; `InputError` if it is a pipe or a device, which might never end."""
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        raise InputError(f"{path}: not a log: not a regular file")
    # No lock: the run may still be writing, and some network file systems have none.
    with h5py.File(path, "r", locking=False) as file:
        yield file


def members(group: h5py.Group) -> dict[str, h5py.Dataset | h5py.Group]:
    """The members of a group by name; `InputError` if one of them lies elsewhere."""
    path, inside = group.file.filename, {}
    for name in group:
        where = f"{group.name.rstrip('/')}/{name}"
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            error = f"{where} is a link; copy it with its data"
            raise InputError(f"{path}: the log is refused: {error}")
        inside[name] = member = group[name]
        if isinstance(member, h5py.Dataset) and (member.external or member.is_virtual):
            error = f"the data of {where} lies in other files"
            raise InputError(f"{path}: the log is refused: {error}")
    return inside


def members_of(file: h5py.File, name: str) -> dict[str, h5py.Dataset | h5py.Group]:
    """`members` of the group /NAME; none if there is no such group."""
    group = members(file).get(name)
    return members(group) if isinstance(group, h5py.Group) else {}


def _answer(read: Callable[[], object], sender: Connection) -> None:
    """In the new process: call ``read``, send the answer and exit."""
    try:
        faulthandler.disable()
        reset_crash_handlers()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # silence the C library
        try:
            answer: tuple[bool, object] = True, read()
        except Exception as error:
            answer = False, error
        sender.send(answer)
    finally:
        os._exit(1)
