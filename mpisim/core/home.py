"""Folders for a user who has none: an unknown user id without HOME, or a home that is read-only."""

from __future__ import annotations

import os
import stat
from functools import cache
from pathlib import Path

NONE = "/nonexistent"  # as the home of users without one is called on Debian


def provide() -> None:
    """Give this process what Open MPI and Numba do not start without.

    Open MPI needs the name of a home, which need not exist, and Numba a place for compiled code,
    beside the package or in the user's cache folder.
    """
    if "HOME" not in os.environ and os.path.expanduser("~") == "~":
        os.environ["HOME"] = NONE
    places = Path(__file__).parent / "__pycache__", _xdg_cache() / "numba"
    if "NUMBA_CACHE_DIR" not in os.environ and not any(map(_writable, places)):
        os.environ["NUMBA_CACHE_DIR"] = str(private() / "numba")


def cache_folder() -> Path:
    """$MPISIM_CACHE, else mpisim in $XDG_CACHE_HOME, else in ~/.cache, else a temporary one.

    It has files that can be made again and that processes share.
    """
    if os.environ.get("MPISIM_CACHE"):
        return Path(os.environ["MPISIM_CACHE"])
    return (private() if os.environ.get("HOME") == NONE else _xdg_cache()) / "mpisim"


def _xdg_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))


@cache
def private() -> Path:
    """A folder for temporary files that belongs to this user alone."""
    import tempfile

    path = Path(tempfile.gettempdir()) / f"mpisim-{os.getuid()}"
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        status = path.lstat()
    except OSError:
        return path
    # Whoever can write there decides what code is executed, so a folder of another user is not used
    if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077:
        return path
    return Path(tempfile.mkdtemp(prefix="mpisim-"))


def _writable(folder: Path) -> bool:
    """Whether files can be made in a folder, which is made if it is missing."""
    there = next((place for place in (folder, *folder.parents) if place.exists()), folder)
    return os.access(there, os.W_OK | os.X_OK)
