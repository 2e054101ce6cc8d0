"""A process that is alone and has not started MPI."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


class OneProcess:
    """Stands in for a communicator where a command only plans, prints and draws.

    MPI does not survive a fork, so a process that forks others to run experiments must not start
    it.
    """

    rank, size = 0, 1

    def Dup(self) -> OneProcess:
        """Itself."""
        return self

    def Free(self) -> None:
        """There is nothing to free."""

    def bcast(self, value: T, root: int = 0) -> T:
        """The value."""
        return value
