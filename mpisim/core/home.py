"""Folders for what can be made again, also of a user without a home, or with a read-only one.

Whoever can write such a folder decides what is executed and computed with, so one that another user
could write is not used.
"""

from __future__ import annotations

import os
from pathlib import Path

from mpisim.core.terminal import report_once

NONE = "/nonexistent"  # as the home of users without one is called on Debian
OFF = Path(os.devnull)  # for a folder: nothing can be written or found below it


def provide() -> None:
    """Give this process what Open MPI and Numba do not start without.

    Open MPI needs the name of a home, which need not exist, and Numba a place for compiled code,
    beside the package or in the user's cache folder.
    """
    if "HOME" not in os.environ and os.path.expanduser("~") == "~":
        os.environ["HOME"] = NONE
    places = Path(__file__).parent / "__pycache__", _xdg_cache() / "numba"
    if "NUMBA_CACHE_DIR" not in os.environ and not any(map(writable, places)):
        os.environ["NUMBA_CACHE_DIR"] = str(_private() / "numba")


def cache_place() -> Path:
    """$MPISIM_CACHE, else mpisim in $XDG_CACHE_HOME, else in ~/.cache, else a temporary one.

    It has files that can be made again and that processes share. `cache_folder` checks it.
    """
    if os.environ.get("MPISIM_CACHE"):
        return Path(os.environ["MPISIM_CACHE"])
    return (_private() if os.environ.get("HOME") == NONE else _xdg_cache()) / "mpisim"


def cache_folder() -> Path:
    """`cache_place`, or `OFF`, checked for each use."""
    return _checked(cache_place(), "others can write it; chmod go-w helps", 0o022)


def _xdg_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))


def _private() -> Path:
    """A folder for temporary files that this user alone can enter, or `OFF`."""
    import tempfile

    folder = Path(tempfile.gettempdir()) / f"mpisim-{os.geteuid()}"
    return _checked(folder, "others can enter it", 0o077)


def _checked(folder: Path, why: str, others: int) -> Path:
    """A folder, which is made if it is missing; `OFF`, and a line, if it is not to be trusted.

    It must belong to this user or root, as a link to it must, and have none of the modes
    ``others``, for the reason ``why``.
    """
    if OFF in folder.parents:
        return OFF
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
        owners = {status.st_uid, folder.lstat().st_uid}
    except OSError as error:
        why = error.strerror or str(error)
    else:
        if not owners <= {0, os.geteuid()}:
            why = "it belongs to another user"
        elif not status.st_mode & others:
            return folder
    report_once(f"mpisim: nothing is cached in {folder}: {why}")
    return OFF


def writable(folder: Path) -> bool:
    """Whether files can be made in a folder, which is made if it is missing."""
    there = next((place for place in (folder, *folder.parents) if place.exists()), folder)
    return os.access(there, os.W_OK | os.X_OK)
