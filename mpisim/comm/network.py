"""The network as an estimator sees it: what it may draw, compress and know. `Star` exchanges it.

Nothing that an estimator gets depends on the number of ranks.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from functools import lru_cache
from itertools import count
from typing import Any

import numpy as np

from mpisim.comm.byzantine import Attack, Server
from mpisim.comm.clock import COMPRESS, Clock
from mpisim.comm.communicators import Comm, OneProcess, SideChannel
from mpisim.comm.fleet import Fleet
from mpisim.comm.ledger import Ledger
from mpisim.compressors.base import Compressor, Flag, Identity
from mpisim.core.arrays import HOST, Arrays, in_host_memory, is_tensor, to_host
from mpisim.core.lazy_rows import LazyRows
from mpisim.core.numerics import philox
from mpisim.core.numerics.sums import rounded
from mpisim.core.protocols import Round
from mpisim.core.rng import Draw, Streams, purpose_key
from mpisim.wire.base import Message, Precision

MEAN = Server()
FLAGS, SET_UP = "flags", "set-up"  # purposes of messages that bad workers send as they should
HONEST = FLAGS, SET_UP


@dataclasses.dataclass(eq=False)
class Upload:
    """Compressed vectors of this rank's workers, on their way to the server."""

    compressor: Compressor
    draw: Draw
    message: Message

    def decoded(self) -> np.ndarray:
        """What the server will see, shape (m, d)."""
        return self.message.decoded()

    def add_to(self, rows: np.ndarray, factor: float = 1.0) -> np.ndarray:
        """``rows`` (m, d) plus ``factor`` times what the server will see, in place."""
        if factor == 1:
            self.message.add_to(rows)
        else:
            rows += factor * self.decoded()
        return rows


@dataclasses.dataclass(eq=False)
class LazyUpload:
    """Uncompressed vectors of this rank's workers that are not computed yet.

    A few workers at a time are computed, encoded, sent and decoded.
    """

    compressor: Compressor
    vectors: LazyRows

    def decoded(self) -> np.ndarray:
        """What the server will see, shape (m, d)."""
        v, precision = self.vectors, self.compressor.precision
        out = np.empty(v.shape, precision.arithmetic)
        for which, rows in v.parts():
            out[which] = rounded(rows, precision.wire)
        return out


def compressed(compressor: Compressor, v: Any, draw: Draw) -> Message:
    """The messages of a block of workers with vectors ``v`` (m, d), which may be tensors.

    These are compressed on their device, or on the host where the compressor or the memory is
    there.
    """
    if not is_tensor(v):
        return compressor.compress(v, draw)
    from mpisim.wire.placed import placed  # imports PyTorch, and has the packers of tensors

    if compressor.on_device and not in_host_memory(v.device):
        return compressor.compress(v, draw)
    return placed(compressor.compress(to_host(v), draw), v.device)


class Observer:
    """Sees what is compressed and estimated; its time is not charged."""

    def up(self, v: np.ndarray | LazyRows, upload: Upload) -> None:
        """Called when this rank's workers have compressed v (senders, d)."""

    def down(self, v: np.ndarray, decoded: np.ndarray) -> None:
        """Called at the server when it has compressed v (d,) for all."""

    def fresh(self, g_i: np.ndarray | LazyRows) -> None:
        """Called with the gradients (m, d) that an estimate begins with. Collective."""

    def estimated(self, g_hat: np.ndarray, g: np.ndarray) -> None:
        """Called with the estimate (d,) at the server, and as all workers decode it."""


def drawn_workers(draw: Draw, n: int, r: int, replace: bool) -> np.ndarray:
    """r of n workers by a draw of one row: (r,), int64, ascending."""
    if not replace:
        return draw.subsets(n, r)[0]
    return np.sort(draw.samples(np.array([n]), r)[0])


class Network(SideChannel):
    """The n workers, this rank's m from ``first`` on, the server, and what they know.

    streams, precision, clock, round : the run's
    arrays : where vectors live, as the problem says
    ledger : counts what is sent
    server, attack : how the server combines messages, and what bad workers send
    fleet : the links and speeds of clients, where they decide what is computed
    runs : of an ensemble (`mpisim.runs.ensemble`); 1 for one run
    """

    runs = 1

    def __init__(
        self,
        comm: Comm | OneProcess,
        n: int,
        layout: str,
        streams: Streams,
        precision: Precision,
        clock: Clock,
        round: Round,
        arrays: Arrays = HOST,
        server: Server = MEAN,
        attack: Attack | None = None,
        fleet: Fleet | None = None,
    ):
        super().__init__(comm, n, layout)
        self.comm: Any = comm
        self.streams, self.precision, self.clock, self._round = streams, precision, clock, round
        self.arrays, self.ledger = arrays, Ledger(n)
        self.server, self.attack, self.fleet = server, attack, fleet
        self._robust = server.robust
        self._plain = attack is None and not server.robust
        self._identity = lru_cache(lambda d: Identity().bind(d, n, precision))
        self._flag = Flag().bind(1, n, precision)
        self._observers: list[Observer] = []
        if arrays is not HOST:
            import mpisim.wire.placed  # noqa: F401 - imports PyTorch, and has the packers of tensors
        self._numbers: defaultdict[str, count[int]] = defaultdict(count)  # of a round's draws

    @property
    def simulated(self) -> Fleet | None:
        """The fleet on whose clock rounds run, by its key ``simulate``; None without one."""
        return self.fleet if self.fleet and self.fleet.simulate else None

    @property
    def round(self) -> int:
        """k of the round in progress."""
        return self._round.k

    @property
    def rounds(self) -> int:
        """Rounds of the whole run."""
        return self._round.rounds

    @property
    def stepsize(self) -> float:
        """gamma of the round in progress, for methods with steps at the workers."""
        return self._round.stepsize

    def end_round(self) -> None:
        """Close the round: its bits are complete, and draws are numbered from 0 again."""
        self._numbers.clear()
        if self.is_server:
            self.ledger.end_round()

    # What workers send

    def dense(self, v: np.ndarray | LazyRows, clients: np.ndarray | None = None) -> Any:
        """The workers' vectors (m, d), uncompressed; with ``clients`` as in `compress`."""
        compressor = self._identity(v.shape[1])
        if isinstance(v, LazyRows) and self._plain:
            return LazyUpload(compressor, v)
        return self.compress(compressor, v, "dense", clients)

    def compress(
        self,
        compressor: Compressor,
        v: np.ndarray | LazyRows,
        purpose: str = "up",
        clients: np.ndarray | None = None,
    ) -> Upload:
        """The workers' vectors (m, d), compressed with this round's draw for ``purpose``.

        With ``clients`` (ascending, numbered over all ranks) only those workers take part, and v
        has the rows of those that are of this rank. A client that is there t times has t rows, and
        sends t messages, compressed independently of each other.
        """
        self.clock.to(COMPRESS)
        draw = self.draw(purpose, clients)
        lazy = compressor.lazy and self._plain
        rows: Any = v.dense() if isinstance(v, LazyRows) and not lazy else v
        if self.attack is not None and purpose not in HONEST:
            with self.clock.aside():
                rows = self._attacked(self.attack, rows, purpose, clients)
        host = self.arrays is HOST
        message = compressor.compress(rows, draw) if host else compressed(compressor, rows, draw)
        upload = Upload(compressor, draw, message)
        if self._observers and purpose == "up":
            self._report("up", rows, upload)
        return upload

    def _attacked(
        self, attack: Attack, v: Any, purpose: str, clients: np.ndarray | None
    ) -> np.ndarray:
        """What is sent instead of v (senders, d)."""
        draw = self.draw(f"{purpose}/attack", clients)
        rows = attack.corrupted(to_host(v), draw.members, self, draw)
        return self.arrays.placed(rows)

    def _received(self, message: Message) -> Message:
        """A message that is decoded on the device where this rank's vectors live."""
        from mpisim.wire.placed import placed

        return placed(message, self.arrays.device)

    # What is shared, and costs no bits

    def coin(self, p: float) -> bool:
        """True with probability p: shared randomness, the same on all ranks, no bits.

        Each call in a round is a new coin. Collective.
        """
        number = next(self._numbers["coin"])
        return philox.uniform(self.streams.seed, purpose_key("coin"), self._round.k, number) < p

    def flips(self, p: float) -> int:
        """How often a coin is thrown until it shows True, with probability p each time: >= 1.

        Shared randomness, the same on all ranks, no bits. Collective.
        """
        return next(k for k in count(1) if self.coin(p))

    def sample(self, r: int, replace: bool = True) -> np.ndarray:
        """r workers, drawn uniformly with replacement, or without, ascending: (r,), int64.

        Shared randomness, the same on all ranks, no bits. Each call in a round draws anew.
        Collective.
        """
        return drawn_workers(self._shared_draw("sample"), self.n, r, replace)

    def uniforms(self, count: int) -> np.ndarray:
        """Shape (count,), float64 in [0, 1): shared randomness, new numbers for each call."""
        return self._shared_draw("uniforms").uniforms(count)[0]

    def draw(self, purpose: str, clients: np.ndarray | None = None) -> Draw:
        """Random numbers of this rank's workers for ``purpose``: new ones for each call in a round.

        Collective: all ranks count these calls alike.
        """
        number = next(self._numbers[purpose])
        return Draw(self.streams, purpose, self._round.k, self.first, self.m, clients, number)

    def _shared_draw(self, purpose: str, rows: int = 1) -> Draw:
        """`draw`, of so many rows, the same on all ranks."""
        number = next(self._numbers[purpose])
        return Draw(self.streams, purpose, self._round.k, 0, rows, None, number)

    def zeros(self, *shape: int) -> np.ndarray:
        """Zeros of the run's arithmetic, where its vectors live."""
        return self.arrays.zeros(shape, self.precision.arithmetic)

    # For the columns of the log

    def attach(self, observer: Observer) -> None:
        """Report to ``observer`` what is compressed and estimated from now on."""
        self._observers.append(observer)

    def fresh(self, g_i: np.ndarray | LazyRows) -> None:
        """Report this round's gradients (m, d), before compression. Collective."""
        if self._observers:
            self._report("fresh", g_i)

    def estimated(self, g_hat: np.ndarray, g: np.ndarray) -> None:
        """Report the estimate (d,) that the server has, and the one that all workers decode.

        Off the server ``g_hat`` may be anything.
        """
        if self._observers:
            self._report("estimated", g_hat, g)

    def _report(self, event: str, *values: Any) -> None:
        """Call the observers' method ``event``, and go on with the phase that it interrupts."""
        with self.clock.aside():
            for observer in self._observers:
                getattr(observer, event)(*values)
