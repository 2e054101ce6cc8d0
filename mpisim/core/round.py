"""Which round a run is in."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass
class Round:
    """The rounds of a run and the current one; the parts of a run share it and only read it.

    rounds : of the whole run
    k : the round that turns x^k into x^{k+1}; only the loop sets it
    """

    rounds: int
    k: int = 0
