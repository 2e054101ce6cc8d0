"""SIGINT and SIGTERM end a run at the end of a round, with the log complete."""

from __future__ import annotations

import signal
from types import FrameType

STATUS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


class StopSignals:
    """Notes the first signal in ``received`` (0: none); a second one acts as usual."""

    def __init__(self) -> None:
        self.received = 0

    def __enter__(self) -> StopSignals:
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
