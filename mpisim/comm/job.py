"""Starting MPI, and ending the whole job when one rank fails.

An exception that leaves one rank while others wait in MPI would hang them all, so every way out of
a command goes through `run_job`: the exit code is agreed on or the job is aborted with it.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from mpisim.core.errors import InputError, MpisimError

if TYPE_CHECKING:
    from mpi4py import MPI

T = TypeVar("T")
SIZE_VARIABLES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")  # how many ranks mpirun has started
CRASHES = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGABRT, signal.SIGILL)
GRACE_SECONDS = 1.0  # how long a rank that fails waits for the others to fail, too
DRAIN_SECONDS = 0.3  # mpirun passes on what was printed before it kills the job
PATIENCE_SECONDS = 60.0  # how long a rank with an error waits for the others to agree on it


def run_job(body: Callable[..., int], software: Callable[[], Mapping[str, str]]) -> int:
    """body(comm) on the world communicator; its exit code, or the job's end with one clear line.

    `MpisimError`: one line. Any other exception: one traceback that names the rank. Where all ranks
    fail, rank 0 speaks and all return the same code; where some do, one of them speaks and the
    job is aborted. Ranks do not start unless ``software()``, by name, is the same on all.
    """
    from mpi4py import MPI

    from mpisim.comm.consistency import require_consistent

    if not faulthandler.is_enabled():
        crash_plainly()
        faulthandler.enable(2)
    comm = MPI.COMM_WORLD
    alarm = comm.Dup()
    try:
        _require_whole_job(comm)
        if comm.size > 1:
            require_consistent(comm, software())
        return body(comm)
    except BaseException as error:
        if isinstance(error, SystemExit) and error.code in (0, None):
            raise
        code, text = _report(error, comm)
        agreed = _all_failed(alarm, code)
        if agreed is None:
            _end_job(comm, code, text)
            return code
        if comm.rank == 0:
            print(f"mpisim: {text}", file=sys.stderr, flush=True)
        return agreed


def all_or_none(comm: MPI.Intracomm, work: Callable[[], T]) -> T:
    """work() on every rank: its result, or the exception of each rank where every rank fails.

    Where only some ranks fail, one of them speaks and the job is aborted: nothing hangs.
    """
    if comm.size == 1:
        return work()
    alarm = comm.Dup()
    try:
        return work()
    except BaseException as error:
        code, text = _report(error, comm)
        if _all_failed(alarm, code) is None:
            _end_job(comm, code, text)
        raise


def _end_job(comm: MPI.Intracomm, code: int, text: str) -> None:
    print(f"mpisim: {text}", file=sys.stderr, flush=True)
    time.sleep(DRAIN_SECONDS)
    comm.Abort(code)


def crash_plainly() -> None:
    """Take back the handlers of crashes that Open MPI has set.

    They allocate memory, so a process that crashed while it did so would hang in them.
    """
    for number in CRASHES:
        signal.signal(number, signal.SIG_DFL)


def _require_whole_job(comm: MPI.Intracomm) -> None:
    """`InputError` for a rank that MPI left alone, and that would run the whole job by itself.

    So it is with the mpirun of another MPI than mpi4py's, and where mpirun dies before MPI starts.
    """
    started = next((os.environ[v] for v in SIZE_VARIABLES if v in os.environ), "")
    if comm.size == 1 and started.isdigit() and int(started) > 1:
        raise InputError(
            f"mpirun started {started} ranks, but this one is alone: mpirun is gone, or belongs to"
            " another MPI than mpi4py's (see mpisim info)"
        )


def _report(error: BaseException, comm: MPI.Intracomm) -> tuple[int, str]:
    """Exit code and what to print."""
    if isinstance(error, MpisimError):
        return error.exit_code, str(error)
    if isinstance(error, MemoryError):
        return 1, f"rank {comm.rank} of {comm.size} is out of memory: {error}"
    lines = "".join(traceback.format_exception(error)).rstrip()
    code = 130 if isinstance(error, KeyboardInterrupt) else 1
    return code, f"rank {comm.rank} of {comm.size} failed\n{lines}"


def _all_failed(alarm: MPI.Intracomm, code: int) -> int | None:
    """The largest exit code if every rank fails within a grace period, else None."""
    from mpi4py import MPI

    codes = np.array([code])
    request = alarm.Iallreduce(MPI.IN_PLACE, codes, MPI.MAX)
    # rank 0 gives up first, so that one rank speaks where several fail
    end = time.monotonic() + GRACE_SECONDS * (1 if alarm.rank == 0 else 2)
    while not request.Test():
        if time.monotonic() > end:
            return None
        time.sleep(1e-3)
    return int(codes[0])


def together(comm: MPI.Intracomm, work: Callable[[], T]) -> T:
    """work() on every rank: its result, or an `InputError` that all ranks raise alike.

    ``comm`` is used for nothing else meanwhile. A rank whose work raises an `InputError` waits for
    the others. If they do not come, because they need that rank to end their work, its error goes
    out as it is, and `run_job` ends the job. Other exceptions are not waited with.
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
