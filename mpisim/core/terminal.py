"""Text that is safe for a terminal, whatever file it comes from."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from mpisim.core import machine

# Control characters but tab and newline, which move the cursor, colour or title the window; those
# that turn the direction of text; line separators; surrogates.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069"
    "\ud800-\udfff]"
)
LONGEST = 20_000  # characters of a message: a deep traceback
_reported: set[str] = set()
_silent = False
live: list[Callable[[], None]] = []  # erases the line that a terminal shows now, if there is one


def make_way() -> None:
    """Erase the live line of the terminal: what comes next has a line of its own."""
    while live:
        live.pop()()


def printable(text: str) -> str:
    r"""``text`` with control characters as ``\x1b``, but for tabs and newlines."""
    return _UNSAFE.sub(_escaped, text)


def one_line(text: object) -> str:
    """The same without newlines, for messages of one line."""
    return printable(" ".join(str(text).split("\n")))


def report(text: str) -> None:
    """Write `printable` text to standard error, if that is possible; a long one without its middle.

    mpirun may be slower to pass a text on than its ranks are to end.
    """
    if len(text) > LONGEST:
        left_out = len(text) - LONGEST
        text = f"{text[: LONGEST // 2]} ... ({left_out} characters) ... {text[-LONGEST // 2 :]}"
    make_way()
    with contextlib.suppress(OSError, ValueError):
        print(printable(text), file=sys.stderr, flush=True)


@contextlib.contextmanager
def without_remarks() -> Iterator[None]:
    """Meanwhile `report_once` says nothing."""
    global _silent
    _silent = True
    try:
        yield
    finally:
        _silent = False


def report_once(text: str, kind: str = "") -> None:
    """`report`, on rank 0 alone, and once in a process: each text, or one of its ``kind``."""
    if not _silent and machine.launched_rank() == 0 and (kind or text) not in _reported:
        _reported.add(kind or text)
        report(text)


def is_terminal(stream: TextIO) -> bool:
    """Whether a stream is shown as it is written; False for one that is closed."""
    try:
        return stream.isatty()
    except (AttributeError, ValueError):
        return False


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


class PrintableStream:
    """A text stream that writes `printable` text and never fails.

    Characters that its encoding lacks appear as escapes. After a failed write, because the reader
    is gone, say, all else is dropped: what a command does must not depend on it. ``error`` has the
    reason.
    """

    def __init__(self, stream: TextIO):
        self._stream = stream
        self.error: OSError | None = None

    def write(self, text: str) -> int:
        if self.error is None:
            make_way()
            encoding = getattr(self._stream, "encoding", None) or "utf-8"
            encodable = printable(text).encode(encoding, "backslashreplace").decode(encoding)
            with self._noting():
                self._stream.write(encodable)
        return len(text)

    def flush(self) -> None:
        with self._noting():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @contextlib.contextmanager
    def _noting(self):
        try:
            yield
        except OSError as error:
            self.error = self.error or error


def open_standard_streams() -> None:
    """Give a process that was started without standard streams those of /dev/null.

    Else the next files that it opens, a log maybe, would be its standard output and error.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest that is free
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
