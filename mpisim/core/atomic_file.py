"""Write files whole or not at all, and keep HDF5 from ever seeing a full disk.

HDF5 does not survive a failed write: the file is lost, and the process may crash when it closes
it. So new files are built in memory and written as bytes, and space for a growing file is
reserved before HDF5 writes.
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import h5py
import numpy as np

from mpisim.core.errors import OutputError


def image(build: Callable[[h5py.File], None], oldest: str = "earliest") -> bytes:
    """The bytes of the HDF5 file that ``build`` fills.

    ``oldest`` is the earliest HDF5 format to use; from "v110" on, metadata has checksums.
    """
    memory = io.BytesIO()
    with h5py.File(memory, "w", libver=(oldest, "v110")) as file:
        build(file)
    return memory.getvalue()


def write_whole(path: Path, content: bytes, keep: Path | None = None, shared: bool = False) -> None:
    """Write an unnamed file, sync it, then name it. Raises `OSError`.

    An existing file of that name is kept as ``keep``, or replaced. A killed process leaves nothing
    behind, except on a file system without unnamed files: there it leaves ``.NAME.new``, which the
    next call overwrites. With ``shared``, other processes may write the same file at the same
    time, so each uses its own temporary name.
    """
    unique = f".{secrets.token_hex(8)}" if shared else ""
    temporary = path.with_name(f".{path.name}{unique}.new")
    try:
        with _new_file(path.parent, temporary) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            if keep is not None:
                with contextlib.suppress(FileNotFoundError):
                    os.replace(path, keep)
            _give_name(file, path, temporary)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def _new_file(folder: Path, temporary: Path) -> BinaryIO:
    """A new file, unnamed where the system allows it (Linux, most file systems)."""
    try:
        return open(os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o666), "wb")
    except (AttributeError, OSError):  # if the folder is at fault, the next line raises
        return open(temporary, "wb")


def _give_name(file: BinaryIO, path: Path, temporary: Path) -> None:
    if os.fstat(file.fileno()).st_nlink == 0:
        try:
            _link(file, path)
            return
        except FileExistsError:  # only a named file can replace another
            temporary.unlink(missing_ok=True)
            _link(file, temporary)
    os.replace(temporary, path)


def _link(file: BinaryIO, path: Path) -> None:
    # With a folder's descriptor Python calls linkat, which follows the link to the open file.
    folder = os.open(path.parent, os.O_DIRECTORY)
    try:
        os.link(f"/proc/self/fd/{file.fileno()}", path, src_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


def reserve(path: Path, size: int) -> None:
    """Make sure that the file can grow to ``size`` bytes; raises `OSError` if the disk is full."""
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
            raise
    finally:
        os.close(descriptor)


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file whole or not at all; raises `OutputError`.

    NumPy's numbers and arrays become JSON's; any other object becomes text.
    """

    def encode(value: Any) -> Any:
        return value.tolist() if isinstance(value, np.generic | np.ndarray) else str(value)

    text = json.dumps(content, indent=1, default=encode) + "\n"
    try:
        write_whole(path, text.encode())
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from None
