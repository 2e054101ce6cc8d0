"""The ranks of a job, some of them, or this process alone; which of them holds which workers.

A `SideChannel` carries messages between ranks that are not charged.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from mpisim.core import machine
from mpisim.core.errors import InputError, MpisimError
from mpisim.core.numerics.sums import add_rows
from mpisim.core.schema import require

if TYPE_CHECKING:
    from mpi4py import MPI

T = TypeVar("T")
# a communicator; without MPI `OneProcess`, which has the part of it that is used
Comm: TypeAlias = "MPI.Intracomm"
ASLEEP = "MPISIM_WAIT_ASLEEP"  # in the environment: ranks sleep while they wait for a message
NAP_SECONDS = 5e-5
SLEEP_SECONDS = 0.01  # a rank that waited in MPI would take a core from those that work


class OneProcess:
    """The communicator of a job of one process, in which MPI does not start.

    MPI takes a second to start, and does not survive a fork.
    """

    rank, size = 0, 1
    library = "not used: one rank"

    def Dup(self) -> OneProcess:
        """Itself."""
        return self

    def Free(self) -> None:
        """There is nothing to free."""

    def Barrier(self) -> None:
        """One process has nothing to wait for."""

    def bcast(self, value: T, root: int = 0) -> T:
        """The value."""
        return value

    def gather(self, value: T, root: int = 0) -> list[T]:
        """The values of all ranks."""
        return [value]

    allgather = gather


def all_ranks() -> Any:
    """The communicator of all ranks that a launcher has started, else of this process alone."""
    if not machine.launched():
        return OneProcess()
    from mpi4py import MPI

    return asleep(MPI.COMM_WORLD) if os.environ.get(ASLEEP) else MPI.COMM_WORLD


def asleep(comm: Comm) -> Comm:
    """The same communicator, whose ranks sleep while they wait for vectors; copies of it, too.

    MPI's own waiting takes a core, or gives it away for a turn of the scheduler. With more ranks
    than cores both disturb those that work, and the seconds that are measured.
    """
    from mpi4py import MPI

    def waiting(start: str) -> Callable[..., None]:
        return lambda comm, *buffers: _sleep_until_done(getattr(comm, start)(*buffers))

    calls = ("Bcast", "Gatherv", "Scatterv", "Barrier", "Send", "Recv")
    methods = {call: waiting(f"I{call.lower()}") for call in calls}
    return type("Asleep", (MPI.Intracomm,), methods)(comm)


def _sleep_until_done(request: MPI.Request) -> None:
    while not request.Test():
        time.sleep(NAP_SECONDS)


def side_of(comm: Any) -> Any:
    """A second communicator of the same ranks, made once for each ``comm``; one rank needs none."""
    return comm if comm.size == 1 else _made_once(comm, "side", comm.Dup)


def groups_of(comm: Comm, size: int) -> tuple[Comm, int]:
    """The group of ``size`` ranks that this rank belongs to, and its number. Collective.

    The groups follow each other; the ranks that are left over form a smaller one, the last. A rank
    that is a group of its own needs no MPI.
    """
    if size == 1:
        return OneProcess(), comm.rank  # type: ignore[return-value]
    number = comm.rank // size
    return _made_once(comm, f"groups of {size}", lambda: comm.Split(number, comm.rank)), number


def on_subset(comm: Comm, size: int, work: Callable[[Comm], T]) -> T:
    """Return work(part) on the first ``size`` ranks of ``comm``; the others return rank 0's result.

    Collective. ``part`` is ``comm`` if all ranks work. The others raise the `MpisimError` that rank
    0 raises. After any other failure `run_job` ends the job, as it would without them.
    """
    if size == comm.size:
        return work(comm)

    def first_ranks() -> Any:
        return comm.Create_group(comm.group.Range_incl([(0, size - 1, 1)]))

    side = side_of(comm)
    result: Any = None
    error: MpisimError | None = None
    if comm.rank < size:
        try:
            result = work(_made_once(comm, f"first {size}", first_ranks))
        except MpisimError as raised:
            error = raised
        for rank in range(size, comm.size) if comm.rank == 0 else ():
            side.send((result, error), rank)
    else:
        while not side.Iprobe(0):
            time.sleep(SLEEP_SECONDS)
        result, error = side.recv(source=0)
    if error is not None:
        raise error
    return result


def meet(comm: Comm, meanwhile: Callable[[], object]) -> None:
    """Wait, asleep, until all ranks of ``comm`` are here; call ``meanwhile`` now and then.

    Nothing else may use ``comm`` meanwhile.
    """
    request = comm.Ibarrier()
    while not request.Test():
        meanwhile()
        time.sleep(SLEEP_SECONDS)


def _made_once(comm: Any, name: str, make: Callable[[], Any]) -> Any:
    """A communicator, made once for each ``comm`` and name.

    MPI libraries allow some thousands of communicators, and a sweep may have more runs.
    """
    parts: Any = comm.Get_attr(_key())
    if parts is None:
        comm.Set_attr(_key(), parts := {})
    if name not in parts:
        parts[name] = make()
    return parts[name]


@cache
def _key() -> int:
    """Of the attribute of a communicator that holds those made from it."""
    from mpi4py import MPI

    return MPI.Comm.Create_keyval()


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
            what = f"{n} worker{'s' * (n != 1)} on {holders} worker ranks"
            allowed = f"at least {holders}, or mpirun -n {n + comm.size - holders} at most"
            raise InputError(f"problem.workers: {what}; allowed: {allowed}")
        self.starts = starts(n, comm.size, layout)
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
        return self.publish(all_rows)

    def gather_workers(self, rows: np.ndarray) -> np.ndarray | None:
        """Rows (m, ...) of all workers in worker order, (n, ...), on rank 0; None elsewhere.

        With one rank they may be ``rows`` itself: for reading only.
        """
        rows = np.ascontiguousarray(rows)
        if self.ranks == 1:
            return rows
        local = [rows, rows.nbytes, BYTE]
        if not self.is_server:
            self.side.Gatherv(local, None)
            return None
        gathered = np.empty((self.n, *rows.shape[1:]), rows.dtype)
        ends = self.starts * (gathered.nbytes // self.n)
        self.side.Gatherv(local, [gathered, np.diff(ends), ends[:-1], BYTE])
        return gathered


def worker_ranks(ranks: int, layout: str) -> int:
    """How many ranks hold workers: all, or all but the server in the layout "dedicated"."""
    return ranks if layout == "shared" or ranks == 1 else ranks - 1


def starts(n: int, ranks: int, layout: str) -> np.ndarray:
    """First worker of each rank, and n, shape (ranks + 1,): blocks as even as possible."""
    holders = worker_ranks(ranks, layout)
    first = [n * r // holders for r in range(holders + 1)]
    return np.array([0] * (ranks - holders) + first)
