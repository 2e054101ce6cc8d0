"""Which group of a sweep runs which point, and how the points ended: small files in its folder.

A group claims a point by making a file that did not exist. This needs no process that hands out
work, and works across hosts that share the folder. Several sweeps of one folder have claims of
their own; what keeps them apart is the lock of each log, which a group holds while it runs the
point, and which dies with it.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from mpisim.core.errors import OutputError
from mpisim.core.files import FileLock, Locked, write_json
from mpisim.runs.signals import EXIT_CODES
from mpisim.runs.sweep.points import Outcome, folder_lock

NAME = ".side-by-side"  # and a token
TAKEN, EXPECTED, ENDED = ".taken", ".expected", ".json"
STOP, LOCK = "stop", "lock"


@contextmanager
def new_claims(folder: Path) -> Iterator[Claims]:
    """Claims that are removed at the end. What killed sweeps have left is removed now."""
    claims = Claims(folder / f"{NAME}-{secrets.token_hex(8)}")
    with _output(claims.folder), folder_lock(folder):
        claims.folder.mkdir()
        lock = FileLock(claims.folder / LOCK)
        lock.__enter__()
        if not _is_free(claims.folder):  # else the file system has no locks, which tell of a kill
            for other in filter(_is_free, folder.glob(f"{NAME}*")):
                shutil.rmtree(other, ignore_errors=True)
    try:
        yield claims
    finally:
        shutil.rmtree(claims.folder, ignore_errors=True)
        lock.__exit__()


class Claims:
    """The claims of one sweep. All methods raise `OutputError` where files cannot be written."""

    def __init__(self, folder: Path):
        self.folder = folder

    def seen(self) -> bool:
        """Whether this process sees the same folder as the one that made the claims."""
        return self.folder.is_dir()

    def take(self, number: int) -> bool:
        """Claim a point; False if another group has it."""
        with _output(self.folder):
            try:
                os.close(os.open(self._path(number, TAKEN), os.O_CREAT | os.O_EXCL, 0o666))
            except FileExistsError:
                return False
        return True

    def taken(self) -> set[int]:
        """The points that are running or have run."""
        return self._numbers(TAKEN)

    def expect(self, number: int, seconds: float) -> None:
        """Record how long a point will take, when it has rehearsed."""
        write_json(self._path(number, EXPECTED), seconds)

    def expected(self, known: Collection[int]) -> dict[int, float]:
        """How long points will take, other than those ``known``."""
        return {number: float(value) for number, value in self._read(EXPECTED, known).items()}

    def end(self, number: int, outcome: Outcome) -> None:
        """Record how a point ended."""
        write_json(self._path(number, ENDED), outcome)

    def ended(self, known: Collection[int]) -> dict[int, Outcome]:
        """How points have ended, other than those ``known``."""
        return {number: Outcome(*value) for number, value in self._read(ENDED, known).items()}

    def stop(self, status: str) -> None:
        """Tell all groups to stop at the end of a round, as the run did that has this status."""
        write_json(self.folder / STOP, EXIT_CODES[status] - 128)

    def stopped(self) -> int:
        """The signal that a group has received; 0: none."""
        with _output(self.folder):
            try:
                return int(json.loads((self.folder / STOP).read_text(encoding="utf-8")))
            except FileNotFoundError:
                return 0

    def _read(self, suffix: str, known: Collection[int]) -> dict[int, Any]:
        new = sorted(self._numbers(suffix).difference(known))
        with _output(self.folder):
            texts = {n: self._path(n, suffix).read_text(encoding="utf-8") for n in new}
        return {number: json.loads(text) for number, text in texts.items()}

    def _numbers(self, suffix: str) -> set[int]:
        with _output(self.folder):
            names = os.listdir(self.folder)
        stems = (name.removesuffix(suffix) for name in names if name.endswith(suffix))
        return {int(stem) for stem in stems if stem.isdigit()}

    def _path(self, number: int, suffix: str) -> Path:
        return self.folder / f"{number}{suffix}"


def _is_free(folder: Path) -> bool:
    """Whether no sweep has the claims in this folder."""
    with suppress(Locked, OSError), FileLock(folder / LOCK):
        return True
    return False


@contextmanager
def _output(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(f"{folder}: cannot be used: {error.strerror}") from None
