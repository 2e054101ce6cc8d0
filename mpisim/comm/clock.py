"""How one rank spends the seconds of a round."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter

from mpisim.core.numerics.kernel_cache import around_compiler

PHASES = ("compute", "compress", "encode", "communicate", "decode", "server", "optimizer", "other")
COMPUTE, COMPRESS, ENCODE, COMMUNICATE, DECODE, SERVER, OPTIMIZER, OTHER = range(8)
PARALLEL = (COMPUTE, COMPRESS, ENCODE)  # the phases in which all ranks work at the same time
EVALUATE = 8  # f and its gradient for the log: timed separately and left out, as in the papers
COMPILE = 9  # loading or compiling a kernel: left out


class Clock:
    """A stopwatch that is always in one phase; `to` takes about 0.1 microseconds.

    seconds : of each phase
    delayed : seconds of `COMPILE` and `EVALUATE` in `PARALLEL` phases, for which other ranks waited
    """

    def __init__(self) -> None:
        self.seconds, self.delayed = [0.0] * (len(PHASES) + 2), 0.0
        self.phase = EVALUATE  # set-up is left out, too, except for its exchanges
        self._since = perf_counter()

    def to(self, phase: int) -> None:
        """Charge the time since the last call to the current phase, then switch to ``phase``."""
        now = perf_counter()
        self.seconds[self.phase] += now - self._since
        self.phase = phase
        self._since = now

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Charge what interrupts a phase to `EVALUATE`, then go on with the phase."""
        interrupted = self.phase
        self.to(EVALUATE)
        before = sum(self.seconds[EVALUATE:])
        yield
        self.to(interrupted)
        if interrupted in PARALLEL:
            self.delayed += sum(self.seconds[EVALUATE:]) - before

    def charge(self, seconds: Sequence[float]) -> None:
        """Add ``seconds`` of each phase; what has passed since the last call is charged to none."""
        for phase, more in enumerate(seconds):
            self.seconds[phase] += more
        self._since = perf_counter()

    def move(self, seconds: float, source: int, target: int) -> None:
        """Charge ``seconds`` to ``target`` instead of ``source``."""
        self.seconds[source] -= seconds
        self.seconds[target] += seconds


class WaitingClock(Clock):
    """A clock of work that a device does by itself: a phase ends when the device is done with it.

    wait : returns when the device is done
    """

    def __init__(self, wait: Callable[[], None]) -> None:
        super().__init__()
        self.wait = wait

    def to(self, phase: int) -> None:
        self.wait()
        super().to(phase)


class SlowestPath:
    """Cumulative seconds of the slowest path, kept on rank 0; ``waited``: what it leaves out.

    All ranks compute, compress and encode at the same time, so the slowest rank counts. Rank 0 then
    decodes, averages and steps, so its own seconds count. The rest of rank 0's time is
    communication: transfer and latency, without waiting for the slowest rank.
    """

    def __init__(self) -> None:
        self.seconds = [0.0] * len(PHASES)
        self.waited = 0.0
        self._last = [0.0] * len(PHASES)

    def resume(self, seconds: list[float], clock: list[float]) -> None:
        """Go on from ``seconds``, without what rank 0's clock, ``clock``, has so far."""
        self.seconds, self._last = seconds, clock[: len(PHASES)]

    def add(self, clock: list[float], slowest: list[float], waited: float) -> None:
        """Add the seconds since the last call.

        clock : rank 0's clock; slowest : compute, compress and encode of the slowest rank since the
        last call; waited : how long rank 0's communication waited for the slowest rank.
        """
        step = [now - last for now, last in zip(clock, self._last, strict=False)]
        self._last = list(clock[: len(PHASES)])
        step[COMPUTE], step[COMPRESS], step[ENCODE] = slowest
        waited = min(step[COMMUNICATE], waited)
        step[COMMUNICATE] -= waited
        self.waited += waited
        for phase, seconds in enumerate(step):
            self.seconds[phase] += seconds


@contextmanager
def uncharged(clock: Clock) -> Iterator[None]:
    """Charge compiling and loading of kernels to no phase of ``clock``.

    Rounds are rehearsed, so that kernels are there before the clock starts. A branch that a round
    takes late, because of its data, may still need another kernel.
    """
    interrupted = clock.phase

    def start() -> None:
        nonlocal interrupted
        interrupted = clock.phase
        clock.to(COMPILE)

    def stop() -> None:
        before = clock.seconds[COMPILE]
        clock.to(interrupted)
        if interrupted in PARALLEL:
            clock.delayed += clock.seconds[COMPILE] - before

    with around_compiler(start, stop):
        yield
