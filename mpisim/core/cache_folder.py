"""The user's cache folder: files that can be recreated and that processes share."""

from __future__ import annotations

import os
from pathlib import Path

from mpisim.core import home
from mpisim.core.atomic_file import write_whole


def folder() -> Path:
    """$MPISIM_CACHE, else $XDG_CACHE_HOME/mpisim, else ~/.cache/mpisim, else a temporary one."""
    if os.environ.get("MPISIM_CACHE"):
        return Path(os.environ["MPISIM_CACHE"])
    return home.user_cache() / "mpisim"


def store(path: Path, content: bytes) -> bool:
    """Write a file whole; if that fails, return False and leave nothing behind."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content, shared=True)
    except OSError:
        return False
    return True
