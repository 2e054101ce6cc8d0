"""The star network: the exchanges between the workers and the server.

Rank 0 is the server. Each rank holds a contiguous block of workers, as even as possible; in the
layout "dedicated" rank 0 holds none. Messages travel as bytes on a communicator of their own, and
every bit is charged.
"""

from __future__ import annotations

from typing import Any, overload

import numpy as np
from mpi4py import MPI

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
from mpisim.comm.side_channel import SideChannel
from mpisim.comm.upload import LazyUpload, Observer, Upload
from mpisim.compressors.base import Compressor
from mpisim.compressors.identity import Identity
from mpisim.core.lazy_rows import LazyRows, blocks
from mpisim.core.ordered_sums import add_rows, ordered_sum, sum_blocks
from mpisim.core.rng import Draw, Streams
from mpisim.core.round import Round
from mpisim.wire.base import Form, Message, Packed, Precision

LENGTH_BITS = 32  # the length of a message, sent where the receiver cannot know it


class Star(SideChannel):
    """The network as an estimator sees it: it never learns how many ranks there are.

    Parameters
    ----------
    comm : MPI.Intracomm
    n : int
        Workers over all ranks.
    layout : {"shared", "dedicated"}
    streams, precision, clock, round : the run's
    """

    def __init__(
        self,
        comm: MPI.Intracomm,
        n: int,
        layout: str,
        streams: Streams,
        precision: Precision,
        clock: Clock,
        round: Round,
    ):
        super().__init__(comm, n, layout)
        self.comm = comm
        self.streams, self.precision, self.clock, self._round = streams, precision, clock, round
        self.ledger = Ledger(n)
        self._dense: dict[int, Compressor] = {}
        self._observers: list[Observer] = []

    def attach(self, observer: Observer) -> None:
        """Show ``observer`` what is compressed from now on."""
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

    @overload
    def dense(self, v: np.ndarray) -> Upload: ...
    @overload
    def dense(self, v: np.ndarray | LazyRows) -> Upload | LazyUpload: ...
    def dense(self, v):
        """The workers' vectors (m, d), uncompressed."""
        if isinstance(v, np.ndarray):
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

        With ``clients`` (numbers of workers over all ranks, ascending) only those take part.
        """
        self.clock.to(COMPRESS)
        draw = self.draw(purpose, clients)
        if not isinstance(v, np.ndarray) and (clients is not None or not compressor.lazy):
            v = v.dense()
        own: Any = v if clients is None else v[draw.members]  # type: ignore[index]
        upload = Upload(compressor, draw, compressor.compress(own, draw))
        if self._observers and purpose == "up":
            self.clock.to(EVALUATE)
            for observer in self._observers:
                observer.up(own, upload)
            self.clock.to(COMPRESS)
        return upload

    def mean(self, upload: Upload | LazyUpload, times: np.ndarray | None = None) -> np.ndarray:
        """Gather, decode and average at the server: (d,) there, zeros on all other ranks.

        ``times`` (n,): how often each worker counts; all once unless given.
        """
        if isinstance(upload, LazyUpload):
            return self._sum_of_parts(upload) / self.n
        message = self.gather(upload)
        if message is None:
            self.clock.to(COMPUTE)
            return np.zeros(upload.compressor.d, self.precision.arithmetic)
        if times is None:
            return message.total() / self.n
        weights = times[times > 0].astype(self.precision.arithmetic)
        return ordered_sum(message.decoded() * weights[:, None]) / times.sum()

    def broadcast(self, v: np.ndarray, compressor: Compressor | None = None) -> np.ndarray:
        """The server's vector (d,) sent to all workers; returns, everywhere, what they decode."""
        self.clock.to(SERVER)
        dense, compressor = compressor is None, compressor or self._identity(v.shape[0])
        draw = Draw(self.streams, "down", self.round, 0, 1)
        if self.is_server:
            sent = compressor.compress(v[None], draw)
            form, packed = sent.form, sent.encode()
        else:
            form, packed = compressor.form(draw), None
        self.clock.to(COMMUNICATE)
        data, sizes, length_bits = self._broadcast_bytes(packed, form)
        self.clock.to(DECODE)
        message = form.decode(data, sizes)
        decoded = message.decoded()[0]
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

    def coin(self, p: float) -> bool:
        """True with probability p: the same on all ranks, drawn from shared randomness, no bits."""
        return self.streams.uniform("coin", self.round) < p

    def sample(self, r: int) -> np.ndarray:
        """How often each worker is among r uniform draws with replacement, shape (n,), int64.

        The same on all ranks, drawn from shared randomness, no bits.
        """
        draw = Draw(self.streams, "sample", self.round, 0, 1)
        drawn = draw.samples(np.array([self.n]), r)[0]
        return np.bincount(drawn, minlength=self.n)

    def draw(self, purpose: str, clients: np.ndarray | None = None) -> Draw:
        """This round's random numbers of this rank's workers for ``purpose``."""
        return Draw(self.streams, purpose, self.round, self.first, self.m, clients)

    # The exchanges below them

    def gather(self, upload: Upload) -> Message | None:
        """All workers' messages, decoded, at the server; None on other ranks."""
        self.clock.to(ENCODE)
        packed = upload.message.encode()
        self.clock.to(COMMUNICATE)
        clients = upload.draw.clients
        starts = self.starts if clients is None else np.searchsorted(clients, self.starts)
        known = upload.message.form.sizes is not None
        form: Form | None = None
        if self.is_server:
            self.clock.to(DECODE)  # redrawing what is known to both sides
            form = self._form_of_all(upload)
            self.clock.to(COMMUNICATE)
        sizes = form.sizes if form is not None else None
        if not known:
            sizes = self._gather_sizes(packed, starts)
        data = self._gather_bytes(packed, sizes, starts)
        if form is None:
            return None
        assert sizes is not None
        self.clock.to(DECODE)
        message = form.decode(data, sizes)
        self.clock.to(SERVER)
        sent = 8 * data.size + (0 if known else LENGTH_BITS * sizes.size)
        self.ledger.up(message.payload_bits, sent, upload.compressor.paper_bits(message), clients)
        return message

    def _form_of_all(self, upload: Upload) -> Form:
        """What is known beforehand of all workers' messages: this rank's own where it has all."""
        if self.m == self.n:
            return upload.message.form
        return upload.compressor.form(upload.draw.block(0, self.n))

    def _sum_of_parts(self, upload: LazyUpload) -> np.ndarray:
        compressor, v, d = upload.compressor, upload.vectors, upload.compressor.d
        total = np.zeros(d, self.precision.arithmetic)
        for start, stop in blocks(self.n, d):  # over all ranks: no bit depends on the layout
            self.clock.to(COMPUTE)
            own = v.rows(*np.clip([start - self.first, stop - self.first], 0, self.m).tolist())
            self.clock.to(COMPRESS)
            draw = self.draw("dense", np.arange(start, stop))
            message = self.gather(Upload(compressor, draw, compressor.compress(own, draw)))
            if message is not None:
                add_rows(total, message.decoded())
        self.clock.to(SERVER if self.is_server else COMPUTE)
        return total

    def _gather_sizes(self, packed: Packed, starts: np.ndarray) -> np.ndarray | None:
        own = packed.sizes.astype(np.uint32)
        if self.is_server:
            sizes = np.empty(starts[-1], np.uint32)
            self.comm.Gatherv(own, [sizes, starts[1:] - starts[:-1], starts[:-1], MPI.UINT32_T])
            return sizes.astype(np.int64)
        self.comm.Gatherv(own, None)
        return None

    def _gather_bytes(
        self, packed: Packed, sizes: np.ndarray | None, starts: np.ndarray
    ) -> np.ndarray:
        if not self.is_server:
            self.comm.Gatherv(packed.data, None)
            return packed.data
        assert sizes is not None
        counts = np.empty(self.ranks, np.int64)
        data = np.empty(sum_blocks(sizes, starts, counts), np.uint8)
        self.comm.Gatherv(packed.data, [data, counts])  # one rank's bytes behind another's
        return data

    def _broadcast_bytes(
        self, packed: Packed | None, form: Form
    ) -> tuple[np.ndarray, np.ndarray, int]:
        sizes, length_bits = form.sizes, 0
        if sizes is None:
            length = np.array([packed.sizes[0] if packed else 0], np.uint32)
            self.comm.Bcast(length)
            sizes, length_bits = length.astype(np.int64), LENGTH_BITS
        data = packed.data if packed else np.empty(int(sizes[0]), np.uint8)
        self.comm.Bcast(data)
        return data, sizes, length_bits

    def _identity(self, d: int) -> Compressor:
        if d not in self._dense:
            self._dense[d] = Identity().bind(d, self.n, self.precision)
        return self._dense[d]

    def send_once(self, rows: np.ndarray) -> tuple[int, np.ndarray]:
        """Send ``rows`` (m, k) before round 0: the first worker known here, and what was decoded.

        The server knows the rows of all workers, (n, k); other ranks know their own, (m, k). Rows
        are charged like any message, and so are the seconds, but not those of waiting for ranks
        that were not ready. Workers go on with the decoded values, too. Collective.
        """
        self.side.Barrier()
        upload = self.dense(rows)
        message = self.gather(upload)
        self.clock.to(EVALUATE)
        return (self.first, upload.decoded()) if message is None else (0, message.decoded())
