"""The outcome of a check, and what stands behind a failure."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from mpisim.core.errors import MpisimError
from mpisim.core.imports import PACKAGE


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
        mark = {"ok": "ok", "failed": "failed"}.get(self.status, "--")
        return f"{mark:<8}{self.subject}: {self.what}" + (f": {self.why}" if self.why else "")


Check = tuple[str, Callable[[], str]]  # what must hold; why it does not, empty if it does


def outcome(subject: str, what: str, check: Callable[[], str]) -> Outcome:
    """Run a check. An exception of the plugin fails it, with the line that raised it."""
    try:
        why = check()
    except NotChecked as reason:
        return Outcome(subject, what, "not checked", str(reason))
    except (Exception, SystemExit) as error:
        why = raised(error)
    return Outcome(subject, what, "failed" if why else "ok", why)


def raised(error: BaseException) -> str:
    """An exception in one line, with the last line outside of the package that it went through."""
    text = " ".join(str(error).split())
    if isinstance(error, MpisimError):
        return text
    text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if PACKAGE not in Path(frame.filename).parents]
    own = [frame for frame in own if "site-packages" not in frame.filename]
    return f"{own[-1].filename}:{own[-1].lineno}: {text}" if own else text
