"""Checks that raise, and their outcomes as lines."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from mpisim.core.errors import MpisimError
from mpisim.core.imports import PACKAGE


class Broken(AssertionError):
    """What a check demands does not hold; the message, one line, says why."""


class NotChecked(Exception):
    """A check does not apply; the message says why."""


class Outcome(NamedTuple):
    """One line of `mpisim check`.

    subject : what is checked: ``compressor firstk (k = 3)``
    what : what must hold
    status : ok, failed, or not checked
    why : it failed, or was not checked
    """

    subject: str
    what: str
    status: str
    why: str = ""

    @property
    def failed(self) -> bool:
        """Whether a promise is broken."""
        return self.status == "failed"

    def __str__(self) -> str:
        mark = "--" if self.status == "not checked" else self.status
        return f"{mark:<8}{self.subject}: {self.what}" + (f": {self.why}" if self.why else "")


class Check(NamedTuple):
    """What must hold, and the function that raises `Broken` if it does not."""

    what: str
    run: Callable[[], object]

    def outcome(self, subject: str) -> Outcome:
        """Run it. Any exception of a plugin fails it, with the line that raised it."""
        try:
            self.run()
        except NotChecked as reason:
            return Outcome(subject, self.what, "not checked", str(reason))
        except (Exception, SystemExit) as error:
            return Outcome(subject, self.what, "failed", one_line(error))
        return Outcome(subject, self.what, "ok")


def assert_all(checks: Iterable[Check]) -> None:
    """Run checks in a test; those that do not apply are passed over."""
    for check in checks:
        outcome = check.outcome("")
        assert not outcome.failed, f"{check.what}: {outcome.why}"


def one_line(error: BaseException) -> str:
    """An exception in one line, with the last line outside of the package that it went through."""
    text = " ".join(str(error).split())
    if isinstance(error, MpisimError | Broken):
        return text
    text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if PACKAGE not in Path(frame.filename).parents and "site-packages" not in frame.filename:
            return f"{frame.filename}:{frame.lineno}: {text}"
    return text
