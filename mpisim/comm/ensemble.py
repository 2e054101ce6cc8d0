"""The star of an ensemble: runs that advance together, whose workers follow one another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mpisim.comm.clock import Clock
from mpisim.comm.ledger import Ledger
from mpisim.comm.star import Star
from mpisim.comm.uploads import LazyUpload, Upload
from mpisim.core.protocols import Round
from mpisim.core.rng import Draw, EnsembleDraw


class EnsembleStar(Star):
    """Several ``stars`` on one rank, in one: a method's lines advance all their runs at once.

    Coins and samples are those of the first. So they may only be asked for if all have one seed.

    Arrays of workers have shape (runs n, d), those of the server and those that all know (runs, d).
    ``n`` is that of one run. Each run has a row of its own in the ledger.
    """

    def __init__(self, stars: Sequence[Star], clock: Clock, round: Round):
        one, by_seed = stars[0], {star.streams.seed: star.streams for star in stars}
        parts = one.streams, one.precision, clock, round, one.arrays
        super().__init__(one.comm, one.n, "shared", *parts)
        self.runs, self.m = len(stars), len(stars) * one.n
        self.ledger = Ledger(one.n, self.runs)
        self._streams = tuple(by_seed[star.streams.seed] for star in stars)

    def draw(self, purpose: str, clients: np.ndarray | None = None) -> Draw:
        if clients is not None:
            return super().draw(purpose, clients)
        number = next(self._numbers[purpose])
        where = self._round.k, 0, self.n, None, number
        return EnsembleDraw(self.streams, purpose, *where, self._streams)

    def mean(self, upload: Upload | LazyUpload) -> np.ndarray:
        if isinstance(upload, LazyUpload):
            return self._lazy_sums(upload) / self.n
        message = self.gather(upload)
        assert message is not None  # of the one rank
        return message.totals(self.runs) / self.n
