"""Finds the logs that a user names."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from pathlib import Path

from mpisim.analysis.log_order import by_settings
from mpisim.core.errors import InputError
from mpisim.core.terminal import one_line, report
from mpisim.runs.log.reader import Log, read_each

PathLike = str | os.PathLike
SUFFIX = ".h5"


def find(paths: PathLike | Iterable[PathLike]) -> list[Path]:
    """The logs at ``paths``: a log, a folder of logs, a pattern such as logs/*.h5, or several.

    Those of a folder or a pattern are in the order of their settings.

    `InputError` for a folder without logs and for a pattern that no file fits.
    """
    named = [paths] if isinstance(paths, str | os.PathLike) else paths
    return [log for path in named for log in _at(Path(path))]


def below(folder: Path) -> list[Path]:
    """The logs of a folder and of all folders in it; `InputError` if there is none."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder")
    return _some(folder, folder.rglob(f"*{SUFFIX}"))


def readable(paths: list[Path]) -> tuple[list[Log], list[InputError]]:
    """The logs that can be read and hold their experiment, and why others are passed over.

    A line on standard error says so of each. `InputError` where no log is left, and for a file that
    is not there.
    """
    found = read_each(paths)
    for path, one in zip(paths, found, strict=True):
        if isinstance(one, InputError) and (len(paths) == 1 or not os.path.lexists(path)):
            raise one
    refused = [one for one in found if isinstance(one, InputError)]
    for error in refused:
        report(f"mpisim: passed over: {one_line(error)}")
    if len(refused) == len(paths):
        raise InputError(f"none of the {len(paths)} files is a log that can be read")
    return [one for one in found if isinstance(one, Log)], refused


def _at(path: Path) -> list[Path]:
    if path.is_dir() and not (path.suffix == SUFFIX and not any(path.glob(f"*{SUFFIX}"))):
        return by_settings(_some(path, path.glob(f"*{SUFFIX}")))
    if path.exists() or not glob.has_magic(str(path)):
        return [path]
    found = sorted(map(Path, glob.glob(str(path), recursive=True)))
    if not found:
        raise InputError(f"{path}: no file fits this pattern")
    return by_settings(found)


def _some(folder: Path, found: Iterable[Path]) -> list[Path]:
    logs = sorted(found)
    if not logs:
        raise InputError(f"{folder}: holds no log (*{SUFFIX})")
    return logs
