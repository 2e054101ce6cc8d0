"""Opens files that anyone may have written: regular ones only, and nothing outside them is read.

HDF5 follows links to other files, and takes the data of a data set from them.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py

from mpisim.core.errors import InputError


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


def names(group: h5py.Group) -> list[str]:
    """The members of a group; `InputError` if one of them lies elsewhere."""
    found = list(group)
    for name in found:
        _require_own(group, name)
    return found


def group_of(file: h5py.File, name: str) -> h5py.Group | None:
    """The group /NAME, or None if there is no such group."""
    if name not in names(file):
        return None
    found = file[name]
    return found if isinstance(found, h5py.Group) else None


def _require_own(group: h5py.Group, name: str) -> None:
    path, where = group.file.filename, f"{group.name.rstrip('/')}/{name}"
    if not isinstance(group.get(name, getlink=True), h5py.HardLink):
        raise InputError(f"{path}: the log is refused: {where} is a link; copy it with its data")
    member = group[name]
    if isinstance(member, h5py.Dataset) and (member.external or member.is_virtual):
        raise InputError(f"{path}: the log is refused: the data of {where} lies in other files")
