"""Step sizes that decrease during a run: the key ``method.schedule``."""

from __future__ import annotations

import dataclasses

from mpisim.core.numerics.functions import power
from mpisim.core.schema import require


@dataclasses.dataclass(frozen=True)
class Schedule:
    """The step size is multiplied by ``factor`` at each of the rounds ``at``.

    at : rounds, or shares of ``run.rounds`` between 0 and 1; ascending.
    """

    at: list[float] = dataclasses.field(default_factory=list)
    factor: float = 0.1

    def __post_init__(self) -> None:
        good = all(v > 0 and (v < 1 or v == int(v)) for v in self.at) and self.at == sorted(self.at)
        allowed = "rounds >= 1, or shares of run.rounds below 1, ascending"
        require(good, "method.schedule.at", self.at, allowed)
        require(self.factor > 0, "method.schedule.factor", self.factor, "a number > 0")

    def multiple(self, k: int, rounds: int) -> float:
        """The factor of the step size in round k, of a run of ``rounds`` rounds."""
        if not self.at:
            return 1.0
        return power(self.factor, sum(k >= start for start in self.starts(rounds)))

    def starts(self, rounds: int) -> list[float]:
        """``at``, with shares as rounds."""
        return [v * rounds if v < 1 else v for v in self.at]
