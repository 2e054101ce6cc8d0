"""The star network: the exchanges between the workers and the server.

Rank 0 is the server. Each rank holds a contiguous block of workers, as even as possible; in the
layout "dedicated" rank 0 holds none. Messages travel as bytes on their own communicator, and every
bit is charged. With one rank they are decoded where they were encoded: MPI has nothing to copy.
"""

from __future__ import annotations

import copy
from typing import Any

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
from mpisim.comm.network import FLAGS, SET_UP, LazyUpload, Network, Upload, compressed
from mpisim.compressors.base import Compressor
from mpisim.core.arrays import HOST, to_host
from mpisim.core.errors import InputError
from mpisim.core.lazy_rows import blocks
from mpisim.core.machine import gigabytes
from mpisim.core.numerics.sums import add_by_run, sum_blocks
from mpisim.core.rng import Draw
from mpisim.wire.base import Form, Message, Packed
from mpisim.wire.values import DenseForm

LENGTH_BITS = 32  # a message's length, sent only if the receiver cannot know it


def lengths_of(sizes: np.ndarray) -> np.ndarray:
    """Bytes of messages, as they cross, uint32; `InputError` for one that takes more bits."""
    if (longest := int(sizes.max(initial=0))) >> LENGTH_BITS:
        size, most = gigabytes(longest), gigabytes(1 << LENGTH_BITS)
        why = f"as its length has {LENGTH_BITS} bits"
        raise InputError(f"a message takes {size}; allowed: below {most}, {why}")
    return sizes.astype(np.uint32)


class Star(Network):
    """Workers send to the server, and the server sends to all of them."""

    def mean(self, upload: Upload | LazyUpload) -> np.ndarray:
        """The mean of the senders' messages (d,), at the server; other ranks get zeros.

        Those that send nothing do not count. Collective.
        """
        if isinstance(upload, LazyUpload):
            return self._lazy_sums(upload)[0] / self.n
        message = self.gather(upload)
        if message is None:
            self.clock.to(COMPUTE)
            return self.zeros(upload.compressor.d)
        if self._robust:
            rows = self.server.combine(message.decoded(), self._shared_draw("buckets"))
            return self.arrays.placed(rows.astype(message.form.precision.arithmetic))
        clients = upload.draw.clients
        senders = self.n if clients is None else len(clients)
        if self.arrays is not HOST:
            message = self._received(message)
        return message.total() / max(senders, 1)

    def average(self, upload: Upload | LazyUpload) -> np.ndarray:
        """The mean of the workers' messages, sent back to all of them as a dense vector (d,)."""
        return self.broadcast(self.mean(upload))

    def broadcast(
        self, v: np.ndarray, compressor: Compressor | None = None, clients: np.ndarray | None = None
    ) -> np.ndarray:
        """Send the server's vector (d,) to all workers; returns what they decode, on every rank.

        Off the server ``v`` may be anything of this shape. With ``clients`` only these workers
        receive it, and its bits are charged for each of them.
        """
        self.clock.to(SERVER)
        sent: Any = None
        packed: Any = None
        form: Any
        if compressor is None:
            form = DenseForm.of(v.shape[-1], self.runs, self.precision)
            sent = form.take(v if v.ndim == 2 else v[None]) if self.is_server else None
        else:
            draw = self._shared_draw("down")
            if self.is_server:
                sent = compressed(compressor, v[None], draw)
            form = sent.form if sent else compressor.form(draw)
        if sent:
            packed = sent.encode()
        self.clock.to(COMMUNICATE)
        if self.ranks == 1:
            data, sizes = packed.data, packed.sizes
        else:
            data, sizes = self._broadcast(form, packed)
        self.clock.to(DECODE)
        message = sent.arrived(packed) if self.ranks == 1 else form.decode(data, sizes)
        if self.arrays is not HOST:
            message = self._received(message)
        rows = message.decoded()
        decoded = rows if v.ndim == 2 else rows[0]
        if self.is_server:
            lengths = LENGTH_BITS if form.sizes is None else 0
            receivers = self.n if clients is None else len(clients)
            payload, sent = int(message.payload_bits[0]), 8 * data.size // form.workers + lengths
            self.ledger.down(receivers * payload, receivers * sent)
            if self._observers and compressor is not None:
                self._report("down", v, decoded)
        self.clock.to(COMPUTE)
        return decoded

    def send(
        self, v: np.ndarray, compressor: Compressor | None = None, draw: Draw | None = None
    ) -> np.ndarray:
        """Send another message of the server to each worker: C_i(v_i), compressed for it alone.

        v : (d,), for all, or (n, d), a row for each; off the server, anything that ends with d
        draw : of an upload; its senders alone receive, compressed with the same random numbers:
            the coordinates that they have sent

        Returns what this rank's receivers decode, shape (m, d). Collective.
        """
        self.clock.to(SERVER)
        compressor = compressor or self._identity(v.shape[-1])
        draw = self._shared_draw("down", self.n) if draw is None else draw.block(0, self.n)
        form, packed = compressor.form(draw.block(self.first, self.m)), None
        if self.is_server:
            rows = v if v.ndim == 2 else self.zeros(draw.workers, len(v)) + v
            message = compressed(compressor, rows, draw)
            packed, implied = message.encode(), message.form.sizes is not None
            lengths = 0 if implied else LENGTH_BITS * draw.workers
            self.ledger.down(int(message.payload_bits.sum()), 8 * packed.data.size + lengths)
        self.clock.to(COMMUNICATE)
        if packed is not None and self.ranks == 1:
            data, sizes = packed.data, packed.sizes
        else:
            data, sizes = self._scatter(form, packed, draw.clients)
        self.clock.to(DECODE)
        message = form.decode(data, sizes)
        if self.arrays is not HOST:
            message = self._received(message)
        rows = message.decoded()
        self.clock.to(COMPUTE)
        return rows

    def flags(self, flags: np.ndarray) -> np.ndarray:
        """Every worker sends a bit, ``flags`` (m,), bool; a bit of payload each.

        Returns the workers whose bit is 1, numbered over all ranks, ascending. Every rank has them,
        so that it knows who sends next; a method tells only the server. Collective.
        """
        rows = flags[:, None].astype(self.precision.arithmetic)
        upload = self.compress(self._flag, rows, FLAGS)
        self.gather(upload)
        self.clock.to(EVALUATE)
        senders = np.flatnonzero(self.all_workers(np.asarray(upload.decoded()))[:, 0])
        self.clock.to(COMPUTE)
        return senders

    def collect(self, upload: Upload) -> np.ndarray:
        """All workers' messages (n, d), at the server; other ranks get zeros. Collective."""
        message = self.gather(upload)
        rows = self.zeros(self.n, upload.compressor.d)
        return rows if message is None else rows + self.arrays.placed(message.decoded())

    def combine(self, rows: np.ndarray) -> np.ndarray:
        """What stands for the mean of rows (n, d) at the server, by ``[server]``: (d,).

        Other ranks get zeros.
        """
        if not self.is_server:
            return self.zeros(rows.shape[1])
        combined = self.server.combine(to_host(rows), self._shared_draw("buckets"))
        return self.arrays.placed(combined)

    def gather(self, upload: Upload) -> Message | None:
        """All workers' messages, decoded, at the server; None on other ranks."""
        self.clock.to(ENCODE)
        compressor, draw, form = upload.compressor, upload.draw, upload.message.form
        packed = upload.message.encode()
        self.clock.to(COMMUNICATE)
        data, sizes, implied = packed.data, packed.sizes, form.sizes is not None
        if self.ranks > 1:
            if self.is_server and self.m < self.n:
                self.clock.to(DECODE)  # the server redraws what both sides know
                form = compressor.form(draw.block(0, self.n))
                self.clock.to(COMMUNICATE)
            data, sizes = self._gather(packed, form.sizes, draw.clients)
            if not self.is_server:
                return None
        self.clock.to(DECODE)
        here = self.ranks == 1
        message = upload.message.arrived(packed) if here else form.decode(data, sizes)
        self.clock.to(SERVER)
        bits, paper = message.payload_bits, compressor.paper_bits(message)
        self.ledger.up(bits, paper, sizes, 0 if implied else LENGTH_BITS, draw.clients)
        return message

    def _gather(
        self, packed: Packed, sizes: np.ndarray | None, clients: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Bytes of all messages and their sizes, in rank order, at the server.

        sizes : bytes of each message of all workers, or None where they have to cross
        """
        crossing = lengths_of(packed.sizes) if sizes is None else None
        if not self.is_server:
            if crossing is not None:
                self.comm.Gatherv(crossing, None)
            self.comm.Gatherv(packed.data, None)
            return packed.data, packed.sizes
        starts = self.starts if clients is None else np.searchsorted(clients, self.starts)
        if sizes is None:
            lengths = np.empty(starts[-1], np.uint32)
            self.comm.Gatherv(crossing, [lengths, np.diff(starts)])
            sizes = lengths.astype(np.int64)
        counts = np.empty(self.ranks, np.int64)
        data = np.empty(sum_blocks(sizes, starts, counts), np.uint8)
        self.comm.Gatherv(packed.data, [data, counts])
        return data, sizes

    def _broadcast(self, form: Form, packed: Packed | None) -> tuple[np.ndarray, np.ndarray]:
        """Bytes and size of the server's message, on every rank."""
        sizes = form.sizes
        if sizes is None:
            length = lengths_of(packed.sizes) if packed else np.empty(1, np.uint32)
            self.comm.Bcast(length)
            sizes = length.astype(np.int64)
        data = packed.data if packed else np.empty(int(sizes[0]), np.uint8)
        self.comm.Bcast(data)
        return data, sizes

    def _scatter(
        self, form: Form, packed: Packed | None, clients: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Bytes and sizes of the messages to this rank's workers, or those of the clients."""
        starts = self.starts if clients is None else np.searchsorted(clients, self.starts)
        sizes = form.sizes
        if sizes is None:
            lengths = np.empty(form.workers, np.uint32)
            crossing = packed and [lengths_of(packed.sizes), np.diff(starts)]
            self.comm.Scatterv(crossing, lengths)
            sizes = lengths.astype(np.int64)
        counts = np.empty(self.ranks, np.int64)
        if packed is not None:
            sum_blocks(packed.sizes, starts, counts)
        data = np.empty(int(sizes.sum()), np.uint8)
        self.comm.Scatterv(packed and [packed.data, counts], data)
        return data, sizes

    def _lazy_sums(self, upload: LazyUpload) -> np.ndarray:
        """Compute, send and add up a few workers' vectors at a time: a sum for each run, (runs, d).

        Zeros off the server.
        """
        compressor, v, d = upload.compressor, upload.vectors, upload.compressor.d
        totals = np.zeros((self.runs, d), self.precision.arithmetic)
        # blocks over all ranks: the same in every layout
        for start, stop in blocks(self.runs * self.n, d):
            self.clock.to(COMPUTE)
            rows = v.rows(*np.clip([start - self.first, stop - self.first], 0, self.m).tolist())
            self.clock.to(COMPRESS)
            draw = self.draw("dense", np.arange(start, stop))
            message = self.gather(Upload(compressor, draw, compressor.compress(rows, draw)))
            if message is not None:
                add_by_run(totals, message.decoded(), start, self.n)
        self.clock.to(SERVER if self.is_server else COMPUTE)
        return totals

    def send_once(self, rows: np.ndarray) -> tuple[int, np.ndarray]:
        """Send ``rows`` (m, k) before round 0; see `mpisim.core.protocols.Uplink`. Collective.

        Bits and seconds are charged like those of any message, except for waiting until all ranks
        are ready. So the exchange is rehearsed first. Workers use the decoded values, too.
        """
        self._rehearse(rows)
        self.side.Barrier()
        upload = self.compress(self._identity(rows.shape[1]), rows, SET_UP)
        message = self.gather(upload)
        self.clock.to(EVALUATE)
        return (self.first, upload.decoded()) if message is None else (0, message.decoded())

    def _rehearse(self, rows: np.ndarray) -> None:
        """Send ``rows`` once, uncharged, so that `send_once` times an exchange that is warm."""
        stage = copy.copy(self)
        stage.clock, stage.ledger, stage._observers = Clock(), Ledger(self.n), []
        stage.gather(stage.compress(stage._identity(rows.shape[1]), rows, SET_UP))
