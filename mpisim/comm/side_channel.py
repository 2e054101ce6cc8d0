"""Which rank holds which workers of a run, and messages between ranks that are not charged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mpisim.comm.communicators import side_of
from mpisim.core.errors import InputError
from mpisim.core.numerics.sums import add_rows
from mpisim.core.schema import require

BYTE = "B"  # as mpi4py writes its type


class SideChannel:
    """Carries what no user of the methods would send: losses for the log, constants, control.

    n : workers over all ranks; this rank has m of them, from worker ``first`` on
    starts : array, shape (ranks + 1,)
        First worker of each rank, and n.
    """

    def __init__(self, comm: Any, n: int, layout: str):
        self.side = side_of(comm)
        self.rank, self.ranks, self.n = comm.rank, comm.size, n
        require(n < 2**31, "problem.workers", n, "an integer below 2^31")
        holders = worker_ranks(comm.size, layout)
        if holders > n:
            raise InputError(
                f"problem.workers: {n} workers on {holders} worker ranks; allowed: at least"
                f" {holders}, or mpirun -n {n + comm.size - holders} at most"
            )
        self.starts = starts(n, comm.size, layout)
        self.counts = np.diff(self.starts)  # the workers of each rank
        self.first = int(self.starts[self.rank])
        self.m = int(self.starts[self.rank + 1]) - self.first
        self.is_server = self.rank == 0

    def relay(self, total: np.ndarray, fold: Callable[[np.ndarray], None]) -> None:
        """Pass ``total`` from rank to rank, each folding in its part; all ranks get the result.

        Rank order is worker order, so the sum has the same bits on any number of ranks.
        """
        if self.rank > 0:
            self.side.Recv(total, self.rank - 1)
        fold(total)
        if self.ranks == 1:
            return
        if self.rank < self.ranks - 1:
            self.side.Send(total, self.rank + 1)
        self.side.Bcast(total, self.ranks - 1)

    def sum_over_workers(self, rows: np.ndarray) -> np.ndarray:
        """Sum of rows (m, k) over all workers in worker order, shape (k,), on every rank."""
        total = np.zeros(rows.shape[1])
        self.relay(total, lambda t: add_rows(t, rows))
        return total

    def publish(self, v: np.ndarray) -> np.ndarray:
        """The server's array, on every rank; elsewhere ``v`` has its shape. For reading only."""
        if self.ranks > 1:
            v = np.array(v)
            self.side.Bcast([v, v.nbytes, BYTE])
        return v

    def all_workers(self, rows: np.ndarray) -> np.ndarray:
        """Rows (m, ...) of all workers in worker order, shape (n, ...), on every rank.

        For reading only, as in `gather_workers`.
        """
        all_rows = self.gather_workers(rows)
        if all_rows is None:
            all_rows = np.empty((self.n, *rows.shape[1:]), rows.dtype)
        if self.ranks > 1:
            self.side.Bcast([all_rows, all_rows.nbytes, BYTE])
        return all_rows

    def gather_workers(self, rows: np.ndarray) -> np.ndarray | None:
        """Rows (m, ...) of all workers in worker order, (n, ...), on rank 0; None elsewhere.

        With one rank they may be ``rows`` itself: for reading only.
        """
        rows = np.ascontiguousarray(rows)
        if self.ranks == 1:
            return rows
        row_bytes = rows.itemsize * int(np.prod(rows.shape[1:], dtype=np.int64))
        local = [rows, rows.nbytes, BYTE]
        if not self.is_server:
            self.side.Gatherv(local, None)
            return None
        gathered = np.empty((self.n, *rows.shape[1:]), rows.dtype)
        counts, starts = np.diff(self.starts) * row_bytes, self.starts[:-1] * row_bytes
        self.side.Gatherv(local, [gathered, counts, starts, BYTE])
        return gathered


def worker_ranks(ranks: int, layout: str) -> int:
    """How many ranks hold workers: all, or all but the server in the layout "dedicated"."""
    return ranks if layout == "shared" or ranks == 1 else ranks - 1


def ranks_for(n: int, layout: str) -> int:
    """How many ranks give each of n workers a rank of its own."""
    return n if layout == "shared" else n + 1


def starts(n: int, ranks: int, layout: str) -> np.ndarray:
    """First worker of each rank, and n, shape (ranks + 1,): blocks as even as possible."""
    holders = worker_ranks(ranks, layout)
    first = [n * r // holders for r in range(holders + 1)]
    return np.array([0] * (ranks - holders) + first)
