"""Files that a user asked for."""

from __future__ import annotations

from pathlib import Path

from mpisim.core.errors import InputError
from mpisim.core.files import make_folder, write_whole


def write_output(path: Path, content: bytes) -> None:
    """Write a file whole, and its folder before it; `InputError` where that fails."""
    try:
        make_folder(path.parent)
        write_whole(path, content)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None
