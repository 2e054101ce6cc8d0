"""The user's cache folder: files that can be made again, and that many processes share."""

from __future__ import annotations

import os
from pathlib import Path

from mpisim.core.atomic_file import write_whole


def folder() -> Path:
    """$MPISIM_CACHE, else $XDG_CACHE_HOME/mpisim, else ~/.cache/mpisim."""
    if os.environ.get("MPISIM_CACHE"):
        return Path(os.environ["MPISIM_CACHE"])
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path(os.path.expanduser("~")) / ".cache") / "mpisim"


def store(path: Path, content: bytes) -> bool:
    """Write a file whole; False, and nothing left behind, where that is not possible."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content, shared=True)
    except OSError:
        return False
    return True
