"""Start MPI, and end the whole job when one rank fails or differs from the others.

An exception on one rank would leave the others waiting in MPI. So every command runs inside
`run_job`: either all ranks agree on an exit code, or the job is aborted.
"""

from __future__ import annotations

import faulthandler
import hashlib
import json
import os
import shlex
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from mpisim.comm.communicators import Comm, all_ranks
from mpisim.core import machine
from mpisim.core.errors import InconsistentRanks, InputError, MpisimError, interruption
from mpisim.core.terminal import one_line, report

if TYPE_CHECKING:
    from mpi4py import MPI

T = TypeVar("T")
Facts = Mapping[str, str]
GRACE_SECONDS = 1.0  # how long a rank that fails waits for the others to fail
WATCH_SECONDS = 2.0
ABORT_SECONDS = 30  # then a rank that aborts the job, but without its sockets cannot, is killed
PATIENCE_SECONDS = 60.0  # how long a rank with an error waits for the others to agree on it


def run_job(body: Callable[..., int], software: Callable[[], Mapping[str, str]]) -> int:
    """Return the exit code of body(comm) on all ranks of the job, or end it with one line.

    Without mpirun there is one rank, and MPI does not start. An `MpisimError` prints one line, any
    other exception a traceback that names the rank. If all ranks fail, rank 0 prints its message
    and all return the same code. If only some fail, one of them prints its message and aborts the
    job. ``body`` runs only if ``software()`` is the same on all ranks.
    """
    if not faulthandler.is_enabled():
        reset_crash_handlers()
        faulthandler.enable(2)
    comm = all_ranks()
    end_if_closed = _watch_descriptors() if comm.size > 1 else lambda: None
    alarm = comm.Dup()
    try:
        started = machine.launched_ranks()
        if comm.size == 1 and started > 1:  # MPI knows of this one only
            why = "mpirun is gone, or belongs to another MPI than mpi4py's (see mpisim --info)"
            raise InputError(f"mpirun started {started} ranks, but this one is alone: {why}")
        if comm.size > 1:
            arguments = {"command line": shlex.join(sys.argv[1:])}
            require_consistent(comm, {**software(), **arguments})
        return body(comm)
    except BaseException as error:
        if isinstance(error, SystemExit) and error.code in (0, None):
            raise
        end_if_closed()
        code, text = _agree_or_abort(comm, alarm, error)
        if comm.rank == 0:
            report(text)
        return code
    finally:
        end_if_closed()


def all_or_none(comm: Comm, work: Callable[[], T]) -> T:
    """Return work() on every rank, or raise each rank's own exception if every rank fails.

    If only some ranks fail, one of them prints its message and aborts the job: nothing hangs.
    """
    if comm.size == 1:
        return work()
    alarm = comm.Dup()
    try:
        result = work()
    except BaseException as error:
        _agree_or_abort(comm, alarm, error)
        raise
    alarm.Free()  # MPI libraries have some thousands of communicators
    return result


def together(comm: Comm, work: Callable[[], T]) -> T:
    """Return work() on every rank, or raise the same `InputError` on all of them.

    Nothing else may use ``comm`` meanwhile. A rank whose work raises an `InputError` waits for the
    others. If they do not come, because their work needs that rank, it raises its own error, and
    `run_job` ends the job. Other exceptions are raised at once.
    """
    result, message = _attempt(work)
    if comm.size == 1:
        return _agreed(result, message)
    from mpi4py import MPI

    first = np.array([comm.rank if message else comm.size])
    request = comm.Iallreduce(MPI.IN_PLACE, first, MPI.MIN)
    if message and not _completes(request, PATIENCE_SECONDS):
        raise InputError(message)
    request.Wait()
    if first[0] < comm.size:
        message = comm.bcast(message, int(first[0]))
    return _agreed(result, message)


def on_first(comm: Comm, work: Callable[[], T]) -> T:
    """Run work() on rank 0 alone, and return its result or raise its `InputError` on every rank."""
    return _agreed(*comm.bcast(_attempt(work) if comm.rank == 0 else None))


def require_consistent(comm: Comm, facts: Facts) -> None:
    """Raise the same `InconsistentRanks` on every rank unless ``facts`` are the same on all.

    Collective. Ranks exchange 32 bytes, and the facts themselves only if these differ.
    """
    if comm.size == 1:
        return
    text = json.dumps(sorted(facts.items()))
    digest = np.frombuffer(hashlib.sha256(text.encode()).digest(), np.uint8)
    digests = np.empty((comm.size, digest.size), np.uint8)
    comm.Allgather(digest, digests)
    if (digests == digests[0]).all():
        return
    gathered = comm.allgather((dict(facts), socket.gethostname()))
    raise InconsistentRanks(difference(*zip(*gathered, strict=True)))


def difference(facts: Sequence[Facts], hosts: Sequence[str]) -> str:
    """A line that names each differing fact, with the ranks (and hosts) that have each value."""
    names = dict.fromkeys(name for one in facts for name in one)
    parts = []
    for name in names:
        ranks: dict[str, list[int]] = {}
        for rank, one in enumerate(facts):
            ranks.setdefault(one.get(name, "missing"), []).append(rank)
        if len(ranks) > 1:
            values = (f"{value} on {_ranks_text(where, hosts)}" for value, where in ranks.items())
            parts.append(f"{name} is {', '.join(values)}")
    return f"the ranks of this job differ: {'; '.join(parts)}; all must have the same"


def reset_crash_handlers() -> None:
    """Remove Open MPI's handlers of crashes.

    They allocate memory, so a process that crashes while allocating would hang in them.
    """
    crashes = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGABRT, signal.SIGILL)
    for number in crashes:
        signal.signal(number, signal.SIG_DFL)


def _agree_or_abort(comm: Comm, alarm: Comm, error: BaseException) -> tuple[int, str]:
    """The largest exit code and this rank's message, if every rank fails; else abort the job."""
    code, text = 1, f"rank {comm.rank} of {comm.size}"
    if isinstance(error, MpisimError):
        code, text = error.exit_code, one_line(error)
    elif isinstance(error, KeyboardInterrupt):
        code, text = interruption(error)
    elif isinstance(error, MemoryError):
        text += f" is out of memory: {one_line(error)}"
    else:
        text += " failed\n" + "".join(traceback.format_exception(error)).rstrip()
    text, codes = f"mpisim: {text}", np.array([code])
    if comm.size == 1:
        return code, text
    from mpi4py import MPI

    request = alarm.Iallreduce(MPI.IN_PLACE, codes, MPI.MAX)
    # rank 0 gives up first, so that only one of several failing ranks prints
    if not _completes(request, GRACE_SECONDS * (1 if comm.rank == 0 else 2)):
        report(text)
        time.sleep(0.3)  # for mpirun to forward what was printed before it kills the job
        signal.alarm(ABORT_SECONDS)
        comm.Abort(code)
    return int(codes[0]), text


@cache
def _watch_descriptors() -> Callable[[], None]:
    """A check that ends this process if its descriptors have been closed, by a plugin say.

    A thread makes it every `WATCH_SECONDS`, too. MPI waits for ever for those of the other ranks,
    at the latest in its last call, when Python has no threads any more. But mpirun sees its child
    end.
    """
    here, inode = os.open(os.devnull, os.O_RDONLY), os.stat(os.devnull)

    def end_if_closed() -> None:
        try:
            closed = not os.path.samestat(os.fstat(here), inode)
        except OSError:
            closed = True
        if closed:
            os._exit(1)

    def watch() -> None:
        while True:
            time.sleep(WATCH_SECONDS)
            end_if_closed()

    threading.Thread(target=watch, daemon=True).start()
    return end_if_closed


def _completes(request: MPI.Request, seconds: float) -> bool:
    """Whether a non-blocking exchange completes in time."""
    end = time.monotonic() + seconds
    while not request.Test():
        if time.monotonic() > end:
            return False
        time.sleep(1e-3)
    return True


def _attempt(work: Callable[[], T]) -> tuple[T | None, str]:
    """The result of work() and "", or None and the message of its `InputError`."""
    try:
        return work(), ""
    except InputError as error:
        return None, str(error)


def _agreed(result: Any, message: str) -> Any:
    """``result``, or the `InputError` that all ranks raise at this point."""
    if message:
        raise InputError(message).on_every_rank()
    return result


def _ranks_text(ranks: list[int], hosts: Sequence[str]) -> str:
    """``ranks 0-2, 5 (host a)``; of several hosts only the first is named."""
    runs: list[tuple[int, int]] = []
    for rank in ranks:
        follows = runs and rank == runs[-1][1] + 1
        runs.append((runs.pop()[0] if follows else rank, rank))
    texts = [str(a) if a == b else f"{a}-{b}" for a, b in runs]
    names = list(dict.fromkeys(hosts[rank] for rank in ranks))
    where = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
    return f"{'ranks' if len(ranks) > 1 else 'rank'} {', '.join(texts)} ({where})"
