"""How runs end: by SIGINT, SIGTERM, SIGHUP with a complete log, say; status, and exit code."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import Any

from mpisim.core.errors import Diverged, InputError
from mpisim.core.terminal import one_line
from mpisim.runs.ctrl_c import LastWords

STATUS = {  # SIGHUP: the terminal is closed
    signal.SIGINT: "interrupted",
    signal.SIGHUP: "terminated",
    signal.SIGTERM: "terminated",
}
CAUSE = {"interrupted": "Ctrl-C", "terminated": "SIGTERM"}
SAY_SECONDS = 0.1  # between two updates of the last words


def nobody() -> int:
    """No other process has received a signal."""
    return 0


class StopSignals:
    """Notes the first signal; a second one has its usual effect.

    Python delivers signals to the main thread; another thread notes none.

    go_on : how to go on after the signal, for the line that says so
    watch : is called at every row, and about once a second between rows that are far apart; returns
        a signal that another process has received, or 0
    """

    def __init__(self, go_on: str = "--resume continues") -> None:
        self._received, self.go_on = 0, go_on
        self.watch: Callable[[], int] = nobody
        self._previous: dict[signal.Signals, Any] = {}
        self._last_words: LastWords | None = None
        self._due = 0.0

    @property
    def received(self) -> int:
        """The first signal; 0: none."""
        self._received = self._received or self.watch()
        return self._received

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            self._previous = {
                number: signal.signal(number, self._note)
                for number in STATUS
                if number != signal.SIGHUP or signal.getsignal(number) == signal.SIG_DFL  # nohup
            }
            self._last_words = LastWords.start()
            if self._last_words is not None:
                self._last_words.say(f"mpisim: stopped by Ctrl-C before a row; {self.go_on}")
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._last_words is not None:
            if not (self._received or kind is KeyboardInterrupt):
                self._last_words.say("")
            self._last_words.close()
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Before the first round: meanwhile a signal has its usual effect."""
        noting = {
            number: signal.signal(number, self._previous[number]) for number in self._previous
        }
        try:
            yield
        finally:
            for number, handler in noting.items():
                signal.signal(number, handler)

    def at(self, k: int, log: Path | None) -> None:
        """Round k has a row: what the line says if mpirun does not wait for the next one."""
        if self._last_words is not None and monotonic() > self._due:
            self._last_words.say(self._line("interrupted", f"{k} or later", log))
            self._due = monotonic() + SAY_SECONDS

    def stopped(self, status: str, k: int, log: Path | None) -> str:
        """The line about a run that ended with ``status``, one of `STATUS`, at round k."""
        if self._last_words is not None:
            self._last_words.say(self._line("interrupted", str(k), log))
        return self._line(status, str(k), log)

    def ended(self, status: str, left: str) -> str:
        """The line about runs side by side that ended with ``status``; ``left``: how to go on."""
        line = f"mpisim: stopped by {CAUSE[status]}; {left}"
        if self._last_words is not None:
            self._last_words.say(line)
        return line

    def _line(self, status: str, k: str, log: Path | None) -> str:
        place = "" if log is None else f"; log {log}"
        return one_line(f"mpisim: stopped by {CAUSE[status]} at round {k}{place}; {self.go_on}")

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._received = self._received or number  # mpirun's SIGTERM follows Ctrl-C
        signal.signal(number, self._previous[signal.Signals(number)])

    @staticmethod
    def status(number: int) -> str:
        """The log's status after signal ``number``."""
        return STATUS[signal.Signals(number)]


COMPLETE = ("done", "diverged")  # a sweep never runs these again
STOPPED = tuple(CAUSE)  # by a signal
EXIT_CODES = {
    "done": 0,
    "diverged": Diverged.exit_code,
    "skipped": InputError.exit_code,
    **{status: 128 + number for number, status in STATUS.items()},
}
