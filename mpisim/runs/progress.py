"""Progress on rank 0: a live line on a terminal, a few full lines in a batch log."""

from __future__ import annotations

import math
import os
import shutil
import sys
import time
from collections.abc import Callable
from typing import TextIO

from mpisim.core.terminal import is_terminal, live

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
            self._write(ERASE_LINE + self._fitting(text))
            live[:] = [self.erase]
        else:
            self._write(text + "\n")
            self.due = now + self._gap
            self._gap = min(2 * self._gap, LONGEST_GAP_SECONDS)

    def close(self, text: str) -> None:
        """Show the last text."""
        self.erase()
        self._write((self._fitting(text) if self._interactive else text) + "\n")
        self.due = math.inf

    def erase(self) -> None:
        """Make way for other output on the terminal."""
        if self._interactive:
            live.clear()
            self._write(ERASE_LINE)

    def _fitting(self, text: str) -> str:
        """The text in the width of the terminal, without its last parts where it is too long."""
        try:
            width = os.get_terminal_size(self._stream.fileno()).columns - 1
        except (OSError, ValueError, AttributeError):  # a stream of a test, or of a notebook
            width = shutil.get_terminal_size().columns - 1
        while len(text) > width and ", " in text:
            text = text.rpartition(", ")[0]
        return text[:width]

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # the reader is gone, or the stream is closed
            self.due = math.inf


class Progress:
    """Progress of a run of ``rounds`` rounds, a `StatusLine` of rank 0, with a line at the end.

    rounds : of the whole run; a resumed run starts at the round of its first `update`
    stream : standard error unless given
    interactive : whether the stream is a terminal; the stream is asked unless given
    clock : seconds, monotonic
    """

    def __init__(
        self,
        rounds: int,
        stream: TextIO | None = None,
        interactive: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.rounds = rounds
        self._clock = clock
        self._begin = clock()
        self._shown = StatusLine(stream, interactive, self._begin)
        self._first: int | None = None
        self._last = (0, math.nan, math.nan, math.nan)

    def update(self, round: int, loss: float, grad_norm_sq: float, bits_per_worker: float) -> None:
        """Report round, f(x), |grad f(x)|^2, and the bits that a worker has sent so far.

        Takes well below a microsecond when nothing is due.
        """
        self._last = (round, loss, grad_norm_sq, bits_per_worker)
        if self._first is None:
            self._first, self._begin = round, self._clock()
        now = self._clock()
        if now >= self._shown.due:
            self._shown.show(self._line(now), now)

    def close(self, status: str = "done") -> None:
        """Write the closing line with the status of the run; later calls do nothing.

        Without a status there is no such line.
        """
        first, self._first = self._first, None
        if not status:
            self._shown.erase()
        if first is None or not status:
            return
        seconds = self._clock() - self._begin
        done = self._last[0] - first
        rate = f" ({done / seconds:.3g} rounds/s)" if done and seconds > 0 else ""
        text = f"{status}: round {self._last[0]} of {self.rounds} in {duration(seconds)}{rate}"
        self._shown.close(text + self._values())

    def _line(self, now: float) -> str:
        assert self._first is not None
        round = self._last[0]
        line = f"round {round}/{self.rounds} ({round / max(self.rounds, 1):.0%})"
        done, seconds = round - self._first, now - self._begin
        if done > 0 and seconds > 0:
            left = (self.rounds - round) * seconds / done
            line += f", {done / seconds:.3g}/s, {duration(left)} left"
        return line + self._values()

    def _values(self) -> str:
        _, loss, grad_norm_sq, bits = self._last
        return f", f {loss:.4g}, |grad f|^2 {grad_norm_sq:.2e}, {bits_text(bits)}/worker"


def duration(seconds: float) -> str:
    """Seconds as text: ``4.2 s``, ``3 min 05 s``, ``2 h 07 min``."""
    if not math.isfinite(seconds):
        return "?"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    seconds = round(seconds)
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02d} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60:02d} min"


def bits_text(value: float) -> str:
    """Bits with a decimal prefix: ``384 kbit``, ``1.2 Mbit``."""
    prefix = ""
    for larger in "kMGT":
        if abs(value) >= 999.5:
            value, prefix = value / 1000.0, larger
    return f"{value:.3g} {prefix}bit"
