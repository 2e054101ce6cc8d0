"""A second communicator of the same ranks, for what is not charged."""

from __future__ import annotations

from functools import cache
from typing import Any

from mpi4py import MPI


def side_of(comm: MPI.Intracomm) -> MPI.Intracomm:
    """A communicator of the same ranks for what is not charged: made once for each ``comm``.

    MPI libraries have some thousands of communicators, and a sweep may have more runs.
    """
    side: Any = comm.Get_attr(_side_key())
    if side is None:
        side = comm.Dup()
        comm.Set_attr(_side_key(), side)
    return side


@cache
def _side_key() -> int:
    return MPI.Comm.Create_keyval()
