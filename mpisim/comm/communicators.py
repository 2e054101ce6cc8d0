"""The ranks of a job, some of them, or this process alone."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from mpisim.core import launcher
from mpisim.core.errors import MpisimError

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
        """There is nobody to wait for."""

    def bcast(self, value: T, root: int = 0) -> T:
        """The value."""
        return value

    def gather(self, value: T, root: int = 0) -> list[T]:
        """The values of all ranks."""
        return [value]

    allgather = gather


def all_ranks() -> Any:
    """The communicator of all ranks that a launcher has started, else of this process alone."""
    if not launcher.launched():
        return OneProcess()
    from mpi4py import MPI

    return asleep(MPI.COMM_WORLD) if os.environ.get(ASLEEP) else MPI.COMM_WORLD


def asleep(comm: Comm) -> Comm:
    """The same communicator, whose ranks sleep while they wait for vectors; copies of it, too.

    MPI's own waiting takes a core, or gives it away for a turn of the scheduler. With more ranks
    than cores both disturb those that work, and the seconds that are measured.
    """
    return _asleep()(comm)


@cache
def _asleep() -> type[Comm]:
    from mpi4py import MPI

    class Asleep(MPI.Intracomm):
        def Bcast(self, *buffers: Any) -> None:
            _sleep_until_done(self.Ibcast(*buffers))

        def Gatherv(self, *buffers: Any) -> None:
            _sleep_until_done(self.Igatherv(*buffers))

        def Scatterv(self, *buffers: Any) -> None:
            _sleep_until_done(self.Iscatterv(*buffers))

        def Barrier(self) -> None:
            _sleep_until_done(self.Ibarrier())

        def Send(self, buffer: Any, to: int) -> None:  # type: ignore[override]
            _sleep_until_done(self.Isend(buffer, to))

        def Recv(self, buffer: Any, source: int) -> None:  # type: ignore[override]
            _sleep_until_done(self.Irecv(buffer, source))

    return Asleep


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
