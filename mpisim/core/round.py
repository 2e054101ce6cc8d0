"""Which round a run is in."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass
class Round:
    """The context of a round, made once for a run and handed to its parts, which only read it.

    rounds : of the whole run
    k : of the round that turns x^k into x^{k+1}; the loop alone sets it
    """

    rounds: int
    k: int = 0
