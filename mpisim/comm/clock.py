"""Where the seconds of a round go, on one rank."""

from __future__ import annotations

from time import perf_counter

PHASES = ("compute", "compress", "encode", "communicate", "decode", "server", "optimizer", "other")
COMPUTE, COMPRESS, ENCODE, COMMUNICATE, DECODE, SERVER, OPTIMIZER, OTHER = range(8)
EVALUATE = 8  # f and its gradient for the log: timed apart and left out, as in the papers


class Clock:
    """A stopwatch that is always in exactly one phase; `to` costs about 0.1 microseconds."""

    def __init__(self) -> None:
        self.seconds = [0.0] * (len(PHASES) + 1)
        self.phase = EVALUATE  # set-up is left out, too, but for what it exchanges
        self._since = perf_counter()

    def to(self, phase: int) -> None:
        """Charge the time since the last call to the phase that was on, and go on in ``phase``."""
        now = perf_counter()
        self.seconds[self.phase] += now - self._since
        self.phase = phase
        self._since = now

    def restart(self) -> None:
        """Forget all seconds."""
        self.seconds = [0.0] * len(self.seconds)

    def move(self, seconds: float, source: int, target: int) -> None:
        """Charge ``seconds`` to ``target`` instead of ``source``."""
        self.seconds[source] -= seconds
        self.seconds[target] += seconds


class SlowestPath:
    """Cumulative seconds of the slowest path, kept on rank 0.

    In a round all ranks compute, compress and encode side by side, so the slowest rank counts;
    decoding, averaging and stepping follow one behind the other, so rank 0's count. What is left
    of rank 0's time is communication: transfer and latency, without waiting for the slowest rank.
    """

    def __init__(self) -> None:
        self.seconds = [0.0] * len(PHASES)
        self._last = [0.0] * len(PHASES)

    def restore(self, seconds: list[float]) -> None:
        """Go on from these seconds."""
        self.seconds = seconds

    def add(self, own: list[float], slowest: list[float], waited: float) -> None:
        """One step of the path.

        own : rank 0's clock; slowest : compute, compress, encode of the slowest rank since the last
        call; waited : how long rank 0 waited for the slowest rank in its communication.
        """
        step = [now - last for now, last in zip(own, self._last, strict=False)]
        self._last = list(own[: len(PHASES)])
        step[COMPUTE], step[COMPRESS], step[ENCODE] = slowest
        step[COMMUNICATE] = max(0.0, step[COMMUNICATE] - waited)
        for phase, seconds in enumerate(step):
            self.seconds[phase] += seconds
