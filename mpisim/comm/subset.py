"""Work on some ranks of a job while the others sleep."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from mpisim.comm.one_process import OneProcess
from mpisim.comm.side_channel import side_of
from mpisim.core.errors import MpisimError

if TYPE_CHECKING:
    from mpi4py import MPI

T = TypeVar("T")
SLEEP_SECONDS = 0.01  # a rank that waited in MPI would take a core from those that work


def on_subset(comm: MPI.Intracomm, size: int, work: Callable[[MPI.Intracomm], T]) -> T:
    """Return work(part) on the first ``size`` ranks of ``comm``; the others return rank 0's result.

    Collective. ``part`` is ``comm`` if all ranks work. The others raise the `MpisimError` that rank
    0 raises. After any other failure `run_job` ends the job, as it would without them.
    """
    if size == comm.size:
        return work(comm)
    side = side_of(comm)
    if comm.rank >= size:
        return _awaited(side)
    try:
        result = work(_first_ranks(comm, size))
    except MpisimError as error:
        _tell(side, size, (None, error))
        raise
    _tell(side, size, (result, None))
    return result


def groups_of(comm: MPI.Intracomm, size: int) -> tuple[MPI.Intracomm, int]:
    """The group of ``size`` ranks that this rank belongs to, and its number. Collective.

    The groups follow each other; the ranks that are left over form a smaller one, the last. A rank
    that is a group of its own needs no MPI.
    """
    if size == 1:
        return OneProcess(), comm.rank  # type: ignore[return-value]
    parts: Any = comm.Get_attr(_groups_key())
    if parts is None:
        comm.Set_attr(_groups_key(), parts := {})
    if size not in parts:
        parts[size] = comm.Split(comm.rank // size, comm.rank)
    return parts[size], comm.rank // size


def meet(comm: MPI.Intracomm, meanwhile: Callable[[], object]) -> None:
    """Wait, asleep, until all ranks of ``comm`` are here; call ``meanwhile`` now and then.

    Nothing else may use ``comm`` meanwhile.
    """
    request = comm.Ibarrier()
    while not request.Test():
        meanwhile()
        time.sleep(SLEEP_SECONDS)


def _tell(side: MPI.Intracomm, size: int, outcome: tuple[Any, MpisimError | None]) -> None:
    """Wake the ranks from ``size`` on with rank 0's outcome."""
    if side.rank == 0:
        for rank in range(size, side.size):
            side.send(outcome, rank)


def _first_ranks(comm: MPI.Intracomm, size: int) -> MPI.Intracomm:
    """The first ranks of ``comm``, made once for each size: MPI has some thousands of these."""
    parts: Any = comm.Get_attr(_parts_key())
    if parts is None:
        comm.Set_attr(_parts_key(), parts := {})
    if size not in parts:
        parts[size] = comm.Create_group(comm.group.Range_incl([(0, size - 1, 1)]))
    return parts[size]


def _awaited(side: MPI.Intracomm) -> Any:
    """What rank 0 returned, or raise what it raised."""
    while not side.Iprobe(0):
        time.sleep(SLEEP_SECONDS)
    result, error = side.recv(source=0)
    if error is not None:
        raise error
    return result


@cache
def _parts_key() -> int:
    from mpi4py import MPI

    return MPI.Comm.Create_keyval()


@cache
def _groups_key() -> int:
    from mpi4py import MPI

    return MPI.Comm.Create_keyval()
