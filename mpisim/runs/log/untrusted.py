"""Reads files that anyone may have written, in a process of its own: HDF5 crashes on some of them.

Only regular files are opened, and nothing outside them is read. HDF5 follows links to other files,
and takes the data of a data set from them.
"""

from __future__ import annotations

import errno
import faulthandler
import math
import multiprocessing
import os
import pickle
import resource
import signal
import stat
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeVar

import h5py

from mpisim.comm.job import reset_crash_handlers
from mpisim.core.errors import InputError
from mpisim.core.machine import ReadingBudget, reading_budget

FILE_SECONDS = 0.05  # of the processor for each file, besides the budget: what most logs take
FILE_BYTES = 1 << 20  # of content for each file, likewise
WALL_SECONDS = 120.0  # for a process that waits, for a disk that does not answer, say
TOGETHER = 64  # files that one process reads, in far less than the seconds that it has
CODE_BYTES = 1 << 29  # of memory that reading takes besides the content

UNWRITTEN = 1 << 26  # bytes that columns may have beyond the size of a file: h5repack compresses
TOO_LONG = "what this command reads has a limit in time; MPISIM_READ_SECONDS sets a larger one"

# What unexpected content raises, and with that what reading a file that has some may raise.
UNEXPECTED = ArithmeticError, AttributeError, LookupError, TypeError, ValueError
DAMAGE = (*UNEXPECTED, MemoryError, OSError, RuntimeError)
T = TypeVar("T")


def in_words(error: BaseException) -> str:
    """What an error of `DAMAGE` says of a file; what Python says of its objects is no help."""
    if isinstance(error, KeyError) and (key := str(error).strip("'")).isidentifier():
        return f"{key} is missing"
    if isinstance(error, AttributeError | TypeError):
        return "it holds something else than mpisim writes there"
    return " ".join(str(error).split()) or "something is missing"


class Crashed(InputError):
    """The process that read a file died, or had to be ended."""


def run_isolated(path: Path | str, read: Callable[[], T], files: int = 1) -> T:
    """Call ``read`` in a process of its own; returns what it returns and raises what it raises.

    The result must be picklable. Raises `Crashed`, one line that names ``path``, if the process
    dies, does not end, or takes more than half of what the command's `reading_budget` has left. If
    no process can be started, for want of memory, ``read`` is called in this one.

    files : that it reads
    """
    with reading_budget() as budget:
        budget.seconds += FILE_SECONDS * files
        budget.bytes += FILE_BYTES * files
        before = _children_seconds()
        try:
            return _run_isolated(path, read, budget)
        finally:
            budget.seconds -= _children_seconds() - before


def _run_isolated(path: Path | str, read: Callable[[], T], budget: ReadingBudget) -> T:
    seconds = math.ceil(budget.seconds / 2)
    if seconds < 1:
        raise Crashed(f"{path}: is not read: {TOO_LONG}")
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(read, sender, seconds, budget.bytes))
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
            content = receiver.recv_bytes()
        except EOFError:
            process.join()
            code = process.exitcode or 0
            if code == -signal.SIGXCPU:
                raise Crashed(f"{path}: takes more than {seconds} s to read: {TOO_LONG}") from None
            how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            raise Crashed(f"{path}: the file is damaged: HDF5 crashed on it ({how})") from None
        finally:
            process.kill()
            process.join(1.0)  # while a disk does not answer, nothing ends a process
    budget.require(len(content), path)
    budget.bytes -= len(content)
    returned, value = pickle.loads(content)
    if not returned:
        raise value
    return value


def _children_seconds() -> float:
    """Of the processor, of all processes that this one has started and seen end."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


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
            results += run_isolated(some[0], partial(list, map(attempt, some)), len(some))
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


def require_readable_size(path: Path, columns: Collection[h5py.Dataset]) -> None:
    """`InputError` for columns that are larger than the file, or than what the command may read."""
    size = sum(column.nbytes for column in columns)
    if size > path.stat().st_size + UNWRITTEN:
        raise InputError(f"{path}: the log is damaged: it is larger than the file")
    with reading_budget() as budget:
        budget.require(size, path)


def members(group: h5py.Group) -> dict[str, h5py.Dataset | h5py.Group]:
    """The members of a group by name; `InputError` if one of them lies elsewhere."""
    refused, inside = f"{group.file.filename}: the log is refused:", {}
    for name in group:
        where = f"{group.name.rstrip('/')}/{name}"
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            raise InputError(f"{refused} {where} is a link; copy it with its data")
        inside[name] = member = group[name]
        if isinstance(member, h5py.Dataset) and (member.external or member.is_virtual):
            raise InputError(f"{refused} the data of {where} lies in other files")
    return inside


def members_of(file: h5py.File, name: str) -> dict[str, h5py.Dataset | h5py.Group]:
    """`members` of the group /NAME; none if there is no such group."""
    group = members(file).get(name)
    return members(group) if isinstance(group, h5py.Group) else {}


def _answer(read: Callable[[], object], sender: Connection, seconds: int, size: float) -> None:
    """In the new process: call ``read``, send the answer, of at most ``size`` bytes, and exit."""
    try:
        faulthandler.disable()
        reset_crash_handlers()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        with suppress(OSError, ValueError):  # a system without /proc, or with a lower limit
            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
            # content is there twice: as it was read, and as it is sent
            most = pages * resource.getpagesize() + CODE_BYTES + 2 * int(size)
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # silence the C library
        try:
            answer: tuple[bool, object] = True, read()
        except Exception as error:
            answer = False, error
        sender.send_bytes(pickle.dumps(answer))
    finally:
        os._exit(1)
