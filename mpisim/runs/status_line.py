"""A line about what is in progress: live on a terminal, now and then in a file."""

from __future__ import annotations

import math
import shutil
import sys
from typing import TextIO

from mpisim.core.terminal import is_terminal

LIVE_SECONDS = 0.25
FIRST_LINE_SECONDS = 10.0
LONGEST_GAP_SECONDS = 60.0
ERASE_LINE = "\r\x1b[2K"


class StatusLine:
    """On a terminal one line overwrites itself a few times a second.

    Elsewhere (mpirun pipes the output of every rank; a batch system writes a file) a full line
    appears after 10 s, 20 s, 40 s and then every minute. A stream that fails is ignored from then
    on, because it must not end the run.

    due : when `show` is to be called next, in seconds of the caller's clock
    """

    def __init__(self, stream: TextIO | None, interactive: bool | None, now: float):
        self._stream = sys.stderr if stream is None else stream
        self._interactive = is_terminal(self._stream) if interactive is None else interactive
        self._gap = FIRST_LINE_SECONDS
        self.due = now if self._interactive else now + self._gap

    def show(self, text: str, now: float) -> None:
        """Show the text, in place of the one before or below it."""
        if self._interactive:
            self.due = now + LIVE_SECONDS
            width = shutil.get_terminal_size().columns - 1
            self._write(ERASE_LINE + text[:width])
        else:
            self._write(text + "\n")
            self.due = now + self._gap
            self._gap = min(2 * self._gap, LONGEST_GAP_SECONDS)

    def close(self, text: str) -> None:
        """Show the last text."""
        self.erase()
        self._write(text + "\n")
        self.due = math.inf

    def erase(self) -> None:
        """Make way for other output on the terminal."""
        if self._interactive:
            self._write(ERASE_LINE)

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # the reader is gone, or the stream is closed
            self.due = math.inf
