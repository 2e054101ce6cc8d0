"""Which group of a sweep runs which point, and how the points ended: small files in its folder.

A group claims a point by making a file that did not exist. This needs no process that hands out
work, works across hosts that share the folder, and a group that dies takes nothing with it: the
next sweep, which holds the lock of the folder, starts with new claims.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from mpisim.core.atomic_file import write_json
from mpisim.core.errors import OutputError
from mpisim.runs.status import EXIT_CODES

NAME = ".side-by-side"
TAKEN, EXPECTED, ENDED = ".taken", ".expected", ".json"
STOP, TOKEN = "stop", "token"


class Outcome(NamedTuple):
    """How a run ended: its status, why it was skipped, and its seconds."""

    status: str
    reason: str
    seconds: float


class Claims:
    """The claims of one sweep. All methods raise `OutputError` where files cannot be written."""

    def __init__(self, folder: Path, token: str):
        self.folder, self.token = folder / NAME, token

    @classmethod
    def new(cls, folder: Path) -> Claims:
        """Replace what a killed sweep left. The caller holds the lock of the folder."""
        claims = cls(folder, secrets.token_hex(8))
        with _output(claims.folder):
            shutil.rmtree(claims.folder, ignore_errors=True)
            claims.folder.mkdir()
            (claims.folder / TOKEN).write_text(claims.token, encoding="ascii")
        return claims

    def seen(self) -> bool:
        """Whether this process sees the same folder as the one that made the claims."""
        try:
            return (self.folder / TOKEN).read_text(encoding="ascii") == self.token
        except (OSError, UnicodeError):
            return False

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
        new = self._numbers(EXPECTED).difference(known)
        with _output(self.folder):
            texts = {n: self._path(n, EXPECTED).read_text(encoding="utf-8") for n in new}
        return {number: float(json.loads(text)) for number, text in texts.items()}

    def end(self, number: int, outcome: Outcome) -> None:
        """Record how a point ended."""
        write_json(self._path(number, ENDED), outcome)

    def ended(self, known: Collection[int]) -> dict[int, Outcome]:
        """How points have ended, other than those ``known``."""
        new = sorted(self._numbers(ENDED).difference(known))
        with _output(self.folder):
            texts = {n: self._path(n, ENDED).read_text(encoding="utf-8") for n in new}
        return {number: Outcome(*json.loads(text)) for number, text in texts.items()}

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

    def remove(self) -> None:
        """Remove all files."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _numbers(self, suffix: str) -> set[int]:
        with _output(self.folder):
            names = os.listdir(self.folder)
        stems = (name.removesuffix(suffix) for name in names if name.endswith(suffix))
        return {int(stem) for stem in stems if stem.isdigit()}

    def _path(self, number: int, suffix: str) -> Path:
        return self.folder / f"{number}{suffix}"


@contextmanager
def _output(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(f"{folder}: cannot be used: {error.strerror}") from None
