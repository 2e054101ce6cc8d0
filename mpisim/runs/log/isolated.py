"""Reads files in a process of its own, because HDF5 crashes on some damaged ones."""

from __future__ import annotations

import faulthandler
import os
import pickle
import resource
import select
import signal
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from mpisim.comm.job import reset_crash_handlers
from mpisim.core.errors import InputError

CPU_SECONDS = 60  # far more than reading takes; ends a process that loops
WALL_SECONDS = 120.0  # also for one that waits, for a disk that does not answer, say

# What may be raised by reading a file with unexpected content.
DAMAGE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
T = TypeVar("T")


class Crashed(InputError):
    """The process that read a file died, or had to be ended."""


def run_isolated(path: Path | str, read: Callable[[], T]) -> T:
    """Call ``read`` in a process of its own; returns what it returns and raises what it raises.

    The result must be picklable. Raises `Crashed`, one line that names ``path``, if the process
    dies or does not end. If no process can be started, for want of memory, ``read`` is called in
    this one.
    """
    ours, theirs = os.pipe()
    with warnings.catch_warnings():
        # Python warns of locks that other threads hold; reading a file needs none of them
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            pid = os.fork()
        except OSError:
            os.close(ours)
            os.close(theirs)
            return read()
    if pid == 0:
        _answer(read, theirs)
    os.close(theirs)
    try:
        answer = _received(ours, WALL_SECONDS)
    except TimeoutError:
        _kill(pid)
        raise Crashed(f"{path}: cannot be read within {WALL_SECONDS:g} s") from None
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
    status = os.waitpid(pid, 0)[1]
    if status:
        code = os.waitstatus_to_exitcode(status)
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        raise Crashed(f"{path}: the file is damaged: HDF5 crashed on it ({how})")
    returned, value = pickle.loads(answer)
    if not returned:
        raise value
    return value


def _received(pipe: int, seconds: float) -> bytes:
    """All that comes through a pipe, which is closed; `TimeoutError` if that takes too long."""
    parts: list[bytes] = []
    end, waiting = time.monotonic() + seconds, select.poll()
    waiting.register(pipe, select.POLLIN)
    with open(pipe, "rb", buffering=0) as file:
        while waiting.poll(max(0.0, end - time.monotonic()) * 1000):
            part = file.read(1 << 20)
            if not part:
                return b"".join(parts)
            parts.append(part)
    raise TimeoutError


def _kill(pid: int) -> None:
    """End a process, and wait for that a moment: while a disk does not answer, nothing ends it."""
    os.kill(pid, signal.SIGKILL)
    for _ in range(100):
        if os.waitpid(pid, os.WNOHANG)[0]:
            return
        time.sleep(0.01)


def _answer(read: Callable[[], object], pipe: int) -> None:
    """In the new process: call ``read``, write the pickled answer and exit."""
    try:
        faulthandler.disable()
        reset_crash_handlers()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # silence the C library
        try:
            answer: tuple[bool, object] = True, read()
        except Exception as error:
            answer = False, error
        with open(pipe, "wb") as file:
            pickle.dump(answer, file, pickle.HIGHEST_PROTOCOL)
        os._exit(0)
    finally:
        os._exit(1)
