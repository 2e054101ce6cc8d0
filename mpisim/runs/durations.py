"""Where the time of a run goes besides its method's seconds, by rank 0's clock."""

from __future__ import annotations

from math import nan

from mpisim.comm.clock import EVALUATE, PHASES, Clock, SlowestPath

# Attributes of the log, of the last start of the run; not a number until it has ended.
PENDING = {
    "seconds_elapsed": nan,
    "seconds_setup": nan,
    "seconds_rehearsal": nan,
    "seconds_evaluation": nan,
    "seconds_waiting": nan,
    "seconds_before": nan,
}


class Durations:
    """The durations of one start of a run; made when its set-up is complete.

    clock : rank 0's, which began with the set-up
    path : the method's seconds
    """

    def __init__(self, clock: Clock, path: SlowestPath):
        clock.to(EVALUATE)
        self.clock, self.path = clock, path
        self._setup = self._uncharged = _uncharged(clock)
        self._total = sum(clock.seconds)
        self._rehearsal = nan
        self._earlier = 0.0  # seconds of the clock before it was reset
        self._before = 0.0  # the method's, of earlier starts

    def resume(self) -> None:
        """A checkpoint has been restored, which set the clock to zero.

        The set-up's exchange was charged in the first start, so all of the set-up is left out here.
        """
        self._setup = self._earlier = self._total
        self._uncharged, self._before = 0.0, sum(self.path.seconds)

    def rehearsed(self) -> None:
        """The log is open and the rounds are rehearsed: the next one is the run's first."""
        self.clock.to(EVALUATE)
        self._rehearsal = _uncharged(self.clock) - self._uncharged
        self._uncharged += self._rehearsal

    def attributes(self) -> dict[str, float]:
        """The values of `PENDING`, in seconds."""
        self.clock.to(EVALUATE)
        return {
            "seconds_elapsed": self._earlier + sum(self.clock.seconds),
            "seconds_setup": self._setup,
            "seconds_rehearsal": self._rehearsal,
            "seconds_evaluation": _uncharged(self.clock) - self._uncharged,
            "seconds_waiting": self.path.waited,
            "seconds_before": self._before,
        }


def _uncharged(clock: Clock) -> float:
    """Seconds that no method is charged for."""
    return sum(clock.seconds[len(PHASES) :])
