"""A job of one process, in which MPI does not start."""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")


class OneProcess:
    """The communicator of such a job: what the one rank sends, it receives.

    MPI takes a second to start, and does not survive a fork. Buffers are as in mpi4py: an array,
    or a list that begins with one.
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

    def allgather(self, value: T) -> list[T]:
        """The values of all ranks."""
        return [value]

    def Bcast(self, buffer: Any, root: int = 0) -> None:
        """The buffer stays as it is."""

    def Gatherv(self, sent: Any, received: Any, root: int = 0) -> None:
        """Copy what is sent to the buffer of the server."""
        source, target = (part[0] if isinstance(part, list) else part for part in (sent, received))
        target[...] = source
