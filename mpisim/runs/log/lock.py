"""One writer for each log: the lock that a run holds, and the places where a log may be."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mpisim.comm.job import on_first
from mpisim.comm.side_channel import side_of
from mpisim.core.errors import InputError
from mpisim.core.files import FileLock, Locked, make_folder

if TYPE_CHECKING:
    from mpi4py import MPI

# Of a log's name; no longer ones.
BESIDE = ("{}.ckpt", "{}.ckpt.old", "{}.journal", ".{}.lock", ".{}.journal.new")


@contextmanager
def locked(comm: MPI.Intracomm, log: Path | None) -> Iterator[None]:
    """Hold the lock of a log, on rank 0, while a run writes it. Collective.

    Every rank raises the same `InputError` if another process holds it, or if there can be no log
    of this name.
    """
    with ExitStack() as stack:
        if log is not None:
            on_first(side_of(comm), lambda: stack.enter_context(lock_of(log)))
        yield


@contextmanager
def lock_of(log: Path) -> Iterator[None]:
    """`locked` in this process alone."""
    require_text(log)
    _require_file(log)
    with ExitStack() as stack:
        try:
            make_folder(log.parent)
            stack.enter_context(FileLock(log.with_name(f".{log.name}.lock")))
        except Locked as holder:
            who = f" ({holder})" if str(holder) else ""
            raise InputError(f"{log}: another run is writing it{who}") from None
        except OSError as error:
            raise InputError(f"{log}: cannot be written: {error.strerror}") from None
        yield


def require_text(path: Path) -> None:
    """`InputError` for a path that is not UTF-8, or that no file can have."""
    try:
        sound = "\0" not in str(path) and bool(str(path).encode())
    except UnicodeEncodeError:
        sound = False
    if not sound:
        raise InputError(f"{str(path)!a}: is not a path in UTF-8")


def _require_file(log: Path) -> None:
    """`InputError` unless log and checkpoints are regular files or do not exist."""
    if log.name in ("", ".."):
        raise InputError(f"{log}: is a folder; a log is a regular file")
    names = log.name, *(name.format(log.name) for name in BESIDE)
    for path in map(log.with_name, names):
        try:
            mode = os.stat(path).st_mode
        except FileNotFoundError:
            continue
        except OSError as error:
            raise InputError(f"{log}: cannot be written: {error.strerror}") from None
        if not stat.S_ISREG(mode):
            what = "a folder" if stat.S_ISDIR(mode) else "a device, a pipe or a socket"
            raise InputError(f"{path}: is {what}; a log and its checkpoints are regular files")
