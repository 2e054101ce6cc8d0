"""Keep the compiler off the clock.

Rounds are rehearsed, so that kernels are there before the clock starts. A branch that a round
takes late, because of its data, may still need another kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from numba.core import event

from mpisim.comm.clock import COMPILE, PARALLEL, Clock

KIND = "numba:compiler_lock"  # held while a kernel is compiled, or loaded from the disk


class _Pause(event.Listener):
    """Stops the phase in progress while the compiler works; its locks are nested."""

    def __init__(self, clock: Clock):
        self.clock, self.depth, self.phase = clock, 0, clock.phase

    def on_start(self, event: event.Event) -> None:
        self.depth += 1
        if self.depth == 1:
            self.phase = self.clock.phase
            self.clock.to(COMPILE)

    def on_end(self, event: event.Event) -> None:
        self.depth -= 1
        if self.depth == 0:
            before = self.clock.seconds[COMPILE]
            self.clock.to(self.phase)
            if self.phase in PARALLEL:
                self.clock.delayed += self.clock.seconds[COMPILE] - before


@contextmanager
def uncharged(clock: Clock) -> Iterator[None]:
    """Charge compiling and loading of kernels to no phase of ``clock``."""
    pause = _Pause(clock)
    event.register(KIND, pause)
    try:
        yield
    finally:
        event.unregister(KIND, pause)
