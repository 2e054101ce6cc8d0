"""The star network: the exchanges between the workers and the server.

Rank 0 is the server. Each rank holds a contiguous block of workers, as even as possible; in the
layout "dedicated" rank 0 holds none. Messages travel as bytes on their own communicator, and every
bit is charged.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from mpisim.comm.clock import (
    COMMUNICATE,
    COMPRESS,
    COMPUTE,
    DECODE,
    ENCODE,
    EVALUATE,
    SERVER,
    Clock,
)
from mpisim.comm.ledger import Ledger
from mpisim.comm.one_process import OneProcess
from mpisim.comm.side_channel import SideChannel
from mpisim.comm.upload import LazyUpload, Observer, Upload
from mpisim.comm.vectors import compressed, received
from mpisim.compressors.base import Compressor
from mpisim.compressors.identity import Identity
from mpisim.core.arrays import HOST, Arrays, is_tensor
from mpisim.core.lazy_rows import LazyRows, blocks
from mpisim.core.numerics.sums import add_rows, sum_blocks
from mpisim.core.protocols import Round
from mpisim.core.rng import Draw, Streams
from mpisim.wire.base import Message, Precision

if TYPE_CHECKING:
    from mpi4py import MPI

LENGTH_BITS = 32  # a message's length, sent only if the receiver cannot know it


class Star(SideChannel):
    """The network as an estimator sees it: nothing depends on the number of ranks.

    n : workers over all ranks
    layout : "shared" or "dedicated"
    streams, precision, clock, round : the run's
    arrays : where vectors live, as the problem says
    """

    def __init__(
        self,
        comm: MPI.Intracomm | OneProcess,
        n: int,
        layout: str,
        streams: Streams,
        precision: Precision,
        clock: Clock,
        round: Round,
        arrays: Arrays = HOST,
    ):
        super().__init__(comm, n, layout)
        self.comm = comm
        self.streams, self.precision, self.clock, self._round = streams, precision, clock, round
        self.arrays, self.ledger = arrays, Ledger(n)
        self._dense: dict[int, Compressor] = {}
        self._observers: list[Observer] = []
        self._messages: dict[str, int] = {}  # of each purpose so far, in round
        self._counted = 0

    def attach(self, observer: Observer) -> None:
        """Report to ``observer`` what is compressed and estimated from now on."""
        self._observers.append(observer)

    @property
    def round(self) -> int:
        """k of the round in progress."""
        return self._round.k

    @property
    def rounds(self) -> int:
        """Rounds of the whole run."""
        return self._round.rounds

    # What estimators use

    def zeros(self, *shape: int) -> np.ndarray:
        """Zeros of the run's arithmetic, where its vectors live."""
        return self.arrays.zeros(shape, self.precision.arithmetic)

    @overload
    def dense(self, v: np.ndarray) -> Upload: ...
    @overload
    def dense(self, v: np.ndarray | LazyRows) -> Upload | LazyUpload: ...
    def dense(self, v):
        """The workers' vectors (m, d), uncompressed."""
        if isinstance(v, np.ndarray) or is_tensor(v):
            return self.compress(self._identity(v.shape[1]), v, "dense")
        return LazyUpload(self._identity(v.shape[1]), v)

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
        own: Any = v
        if not (isinstance(v, np.ndarray) or compressor.lazy or is_tensor(v)):
            own = v.dense()
        upload = Upload(compressor, draw, compressed(compressor, own, draw))
        if self._observers and purpose == "up":
            self.clock.to(EVALUATE)
            for observer in self._observers:
                observer.up(own, upload)
            self.clock.to(COMPRESS)
        return upload

    def mean(self, upload: Upload | LazyUpload) -> np.ndarray:
        """Gather, decode and average the messages at the server: (d,) there, zeros elsewhere."""
        if isinstance(upload, LazyUpload):
            return self._lazy_sum(upload) / self.n
        message = self.gather(upload)
        if message is None:
            self.clock.to(COMPUTE)
            return self.zeros(upload.compressor.d)
        clients = upload.draw.clients
        senders = self.n if clients is None else len(clients)
        return received(message, self.arrays).total() / senders

    def broadcast(self, v: np.ndarray, compressor: Compressor | None = None) -> np.ndarray:
        """Send the server's vector (d,) to all workers; returns what they decode, on every rank."""
        self.clock.to(SERVER)
        dense, compressor = compressor is None, compressor or self._identity(v.shape[0])
        number = 0 if dense else self._next("down")
        draw = Draw(self.streams, "down", self.round, 0, 1, message=number)
        if self.is_server:
            sent = compressed(compressor, v[None], draw)
            form, packed = sent.form, sent.encode()
        else:
            form, packed = compressor.form(draw), None
        self.clock.to(COMMUNICATE)
        sizes, length_bits = form.sizes, 0
        if sizes is None:
            length = np.array([packed.sizes[0] if packed else 0], np.uint32)
            self.comm.Bcast(length)
            sizes, length_bits = length.astype(np.int64), LENGTH_BITS
        data = packed.data if packed else np.empty(int(sizes[0]), np.uint8)
        self.comm.Bcast(data)
        self.clock.to(DECODE)
        message = form.decode(data, sizes)
        decoded = received(message, self.arrays).decoded()[0]
        if self.is_server:
            self.ledger.down(int(message.payload_bits[0]), 8 * data.size + length_bits)
            self.clock.to(EVALUATE)
            for observer in self._observers if not dense else ():
                observer.down(v, decoded)
        self.clock.to(COMPUTE)
        return decoded

    def average(self, upload: Upload | LazyUpload) -> np.ndarray:
        """The mean of the workers' messages, sent back to all of them as a dense vector (d,)."""
        return self.broadcast(self.mean(upload))

    def fresh(self, g_i: np.ndarray | LazyRows) -> None:
        """Report this round's gradients (m, d), before compression. Collective."""
        if self._observers:
            self.clock.to(EVALUATE)
            for observer in self._observers:
                observer.fresh(g_i)
            self.clock.to(COMPUTE)

    def estimated(self, g_hat: np.ndarray, g: np.ndarray) -> None:
        """Report the estimate (d,) that the server has, and the one that all workers decode.

        Off the server ``g_hat`` may be anything.
        """
        if self._observers:
            self.clock.to(EVALUATE)
            for observer in self._observers:
                observer.estimated(g_hat, g)
            self.clock.to(COMPUTE)

    def coin(self, p: float) -> bool:
        """True with probability p: shared randomness, the same on all ranks, no bits.

        Each call in a round is a new coin. Collective.
        """
        return self.streams.uniform("coin", self.round, self._next("coin")) < p

    def sample(self, r: int) -> np.ndarray:
        """r workers, drawn uniformly with replacement, ascending: (r,), int64.

        Shared randomness, the same on all ranks, no bits. Each call in a round draws anew.
        Collective.
        """
        draw = Draw(self.streams, "sample", self.round, 0, 1, message=self._next("sample"))
        return np.sort(draw.samples(np.array([self.n]), r)[0])

    def draw(self, purpose: str, clients: np.ndarray | None = None) -> Draw:
        """Random numbers of this rank's workers for ``purpose``: new ones for each call in a round.

        Collective: all ranks count these calls alike.
        """
        number = self._next(purpose)
        return Draw(self.streams, purpose, self.round, self.first, self.m, clients, number)

    def _next(self, purpose: str) -> int:
        """How many draws ``purpose`` had in this round; counts one more."""
        if self._counted != self.round:
            self._counted = self.round
            self._messages.clear()
        number = self._messages.get(purpose, 0)
        self._messages[purpose] = number + 1
        return number

    # The exchanges behind them

    def gather(self, upload: Upload) -> Message | None:
        """All workers' messages, decoded, at the server; None on other ranks."""
        self.clock.to(ENCODE)
        packed, form = upload.message.encode(), upload.message.form
        self.clock.to(COMMUNICATE)
        own_sizes = packed.sizes.astype(np.uint32) if form.sizes is None else None
        if not self.is_server:
            if own_sizes is not None:
                self.comm.Gatherv(own_sizes, None)
            self.comm.Gatherv(packed.data, None)
            return None
        if self.m < self.n:
            self.clock.to(DECODE)  # the server redraws what both sides know
            form = upload.compressor.form(upload.draw.block(0, self.n))
            self.clock.to(COMMUNICATE)
        clients, sizes, length_bits = upload.draw.clients, form.sizes, 0
        starts, senders = self.starts, self.counts
        if clients is not None:
            starts = np.searchsorted(clients, starts)
            senders = np.diff(starts)
        if sizes is None:
            lengths = np.empty(starts[-1], np.uint32)
            self.comm.Gatherv(own_sizes, [lengths, senders])  # in rank order
            sizes, length_bits = lengths.astype(np.int64), LENGTH_BITS * lengths.size
        counts = np.empty(self.ranks, np.int64)
        data = np.empty(sum_blocks(sizes, starts, counts), np.uint8)
        self.comm.Gatherv(packed.data, [data, counts])  # in rank order
        self.clock.to(DECODE)
        message = form.decode(data, sizes)
        self.clock.to(SERVER)
        paper_bits = upload.compressor.paper_bits(message)
        # a message with nothing in it is none, unless its length crosses
        messages = sizes.size if length_bits else int(np.count_nonzero(sizes))
        sent = 8 * data.size + length_bits
        self.ledger.up(message.payload_bits, sent, paper_bits, clients, messages=messages)
        return message

    def _lazy_sum(self, upload: LazyUpload) -> np.ndarray:
        """Compute, send and add up a few workers' vectors at a time; zeros off the server."""
        compressor, v, d = upload.compressor, upload.vectors, upload.compressor.d
        total = np.zeros(d, self.precision.arithmetic)
        for start, stop in blocks(self.n, d):  # blocks over all ranks: the same in every layout
            self.clock.to(COMPUTE)
            own = v.rows(*np.clip([start - self.first, stop - self.first], 0, self.m).tolist())
            self.clock.to(COMPRESS)
            draw = self.draw("dense", np.arange(start, stop))
            message = self.gather(Upload(compressor, draw, compressor.compress(own, draw)))
            if message is not None:
                add_rows(total, message.decoded())
        self.clock.to(SERVER if self.is_server else COMPUTE)
        return total

    def _identity(self, d: int) -> Compressor:
        if d not in self._dense:
            self._dense[d] = Identity().bind(d, self.n, self.precision)
        return self._dense[d]

    def send_once(self, rows: np.ndarray) -> tuple[int, np.ndarray]:
        """Send ``rows`` (m, k) before round 0; see `mpisim.core.protocols.Uplink`. Collective.

        Bits and seconds are charged like those of any message, except for waiting until all ranks
        are ready. So the exchange is rehearsed first. Workers use the decoded values, too.
        """
        self._rehearse(rows)
        self.side.Barrier()
        upload = self.dense(rows)
        message = self.gather(upload)
        self.clock.to(EVALUATE)
        return (self.first, upload.decoded()) if message is None else (0, message.decoded())

    def _rehearse(self, rows: np.ndarray) -> None:
        """Send ``rows`` once, uncharged, so that `send_once` times an exchange that is warm."""
        stage = copy.copy(self)
        stage.clock, stage.ledger, stage._observers = Clock(), Ledger(self.n), []
        stage.gather(stage.dense(rows))
