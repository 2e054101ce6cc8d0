"""Files that are written whole or not at all, and HDF5 files that never meet a full disk.

HDF5 does not survive a failed write: the file is lost, and the process may crash when it closes
it. So new files are built in memory and written as bytes, and a file that grows has its space
reserved before HDF5 is asked to write.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable
from pathlib import Path

import h5py

FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)


def image(build: Callable[[h5py.File], None]) -> bytes:
    """The bytes of the HDF5 file that ``build`` fills."""
    options = {"driver": "core", "backing_store": False, "libver": ("earliest", "v110")}
    with h5py.File("image", "w", **options) as file:
        build(file)
        file.flush()
        return file.id.get_file_image()


def write_whole(path: Path, content: bytes) -> None:
    """Write a file under a temporary name, sync it, and give it its name. Raises `OSError`."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def reserve(path: Path, size: int) -> None:
    """Make sure that the file can grow to ``size`` bytes; raises `OSError` where it cannot."""
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        if error.errno in FULL:
            raise
    finally:
        os.close(descriptor)
