"""Starting MPI, and ending the whole job when one rank fails.

An exception that leaves one rank while others wait in MPI would hang them all, so every way out of
a command goes through `guarded`: the exit code is agreed on or the job is aborted with it.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from mpisim.errors import InputError, MpisimError

if TYPE_CHECKING:
    from mpi4py import MPI

T = TypeVar("T")
GRACE_SECONDS = 1.0  # rank 0 speaks first; another rank speaks only if rank 0 had nothing to say
PATIENCE_SECONDS = 60.0  # how long a rank with an error waits for the others to agree on it


def guarded(body: Callable[..., int]) -> int:
    """body(comm) on the world communicator; its exit code, or the job's end with one clear line.

    `MpisimError`: one line from one rank. Any other exception: one traceback that names the rank.
    """
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    try:
        return body(comm)
    except MpisimError as error:
        if not error.agreed and comm.rank > 0:
            time.sleep(GRACE_SECONDS)
        if not error.agreed or comm.rank == 0:
            print(f"mpisim: {error}", file=sys.stderr, flush=True)
        code = error.exit_code
        if error.agreed or comm.size == 1:
            return code
    except BaseException as error:
        if isinstance(error, SystemExit) and error.code in (0, None):
            raise
        if comm.rank > 0:
            time.sleep(GRACE_SECONDS / 2)
        lines = "".join(traceback.format_exception(error)).rstrip()
        print(
            f"mpisim: rank {comm.rank} of {comm.size} failed\n{lines}", file=sys.stderr, flush=True
        )
        code = 130 if isinstance(error, KeyboardInterrupt) else 1
        if comm.size == 1:
            return code
    comm.Abort(code)
    return code


def together(comm: MPI.Intracomm, work: Callable[[], T]) -> T:
    """work() on every rank: its result, or an `InputError` that all ranks raise alike.

    ``comm`` is used for nothing else meanwhile. A rank whose work raises an `InputError` waits for
    the others. If they do not come, because they need that rank to end their work, its error goes
    out as it is, and `guarded` ends the job. Other exceptions are not waited with.
    """
    from mpi4py import MPI

    said = ""
    try:
        result = work()
    except InputError as error:
        said = str(error)
    first = np.array([comm.rank if said else comm.size])
    request = comm.Iallreduce(MPI.IN_PLACE, first, MPI.MIN)
    end = time.monotonic() + PATIENCE_SECONDS
    while said and not request.Test():
        if time.monotonic() > end:
            raise InputError(said)
        time.sleep(1e-3)
    request.Wait()
    if first[0] < comm.size:
        raise _agreed(comm.bcast(said, int(first[0])))
    return result


def on_first(comm: MPI.Intracomm, work: Callable[[], T]) -> T:
    """work() on rank 0 alone: its result, or its `InputError`, on every rank."""
    said, result = "", None
    if comm.rank == 0:
        try:
            result = work()
        except InputError as error:
            said = str(error)
    said, result = comm.bcast((said, result))
    if said:
        raise _agreed(said)
    return result  # type: ignore[return-value]


def _agreed(said: str) -> InputError:
    error = InputError(said)
    error.agreed = True
    return error
