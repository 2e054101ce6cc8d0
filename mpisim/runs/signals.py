"""SIGINT and SIGTERM end a run at the end of a round, with the log complete."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

STATUS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


class StopSignals:
    """Notes the first signal in ``received`` (0: none); a second one has its usual effect.

    Python delivers signals to the main thread; another thread notes none.
    """

    def __init__(self) -> None:
        self.received = 0
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            self._previous = {number: signal.signal(number, self._note) for number in STATUS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.received = number
        signal.signal(number, self._previous[signal.Signals(number)])

    @staticmethod
    def status(number: int) -> str:
        """The log's status after signal ``number``."""
        return STATUS[signal.Signals(number)]
