"""Runs points side by side in processes of one machine, without mpirun.

This process plans, waits, and shows the progress. Those that run points are forked from it, with
all that it has imported. None of them starts MPI.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING

from mpisim.core.errors import MpisimError
from mpisim.core.memory import available
from mpisim.runs.launch import guarded
from mpisim.runs.signals import nobody
from mpisim.runs.sweep.board import Board
from mpisim.runs.sweep.claims import Claims
from mpisim.runs.sweep.execute import GO_ON, Sweep
from mpisim.runs.sweep.group import LOOK_SECONDS, Watch, run_group
from mpisim.runs.sweep.lines import PointLines
from mpisim.runs.sweep.order import Work, limits
from mpisim.runs.sweep.side_by_side import say_what_fits
from mpisim.runs.sweep.sizes import works_of

if TYPE_CHECKING:
    from mpi4py import MPI


def run_in_processes(sweep: Sweep, numbers: Sequence[int], jobs: int, lines: PointLines) -> None:
    """Run the points with these numbers, ``jobs`` of them at a time.

    If a process fails, the others stop at the end of a round. Raises `SystemExit` with its code if
    it has reported an error, and `MpisimError` if it was killed.
    """
    works = works_of(sweep.points, numbers)
    jobs, free = min(jobs, len(works)), available()
    claims, most = Claims.new(sweep.folder), limits(works, jobs, free)
    say_what_fits(works, most, free)
    board = Board(sweep, works, claims, lines)
    sweep.signals.go_on = GO_ON
    context, parent = multiprocessing.get_context("fork"), os.getpid()
    processes = []
    sys.stdout.flush()
    for limit in most:
        fitting = [work for work in works if work.bytes <= limit]
        words = sweep, fitting, claims, jobs, parent
        processes.append(context.Process(target=_run, args=words))
    with _all_ended(processes):
        for process in processes:
            process.start()
        _follow(sweep, processes, board.update)
    board.close()
    claims.remove()
    for process in processes:
        if process.exitcode:
            _fail(process.exitcode)


def _run(sweep: Sweep, works: Sequence[Work], claims: Claims, jobs: int, parent: int) -> None:
    """What a process does. Ctrl-C reaches the parent alone, which passes it on."""
    os.setpgid(0, 0)

    def work(comm: MPI.Intracomm) -> int:
        sweep.signals.watch = Watch(claims, nobody, parent)
        run_group(sweep, works, claims, jobs, comm)
        return 0

    code = guarded(work)
    sys.stdout.flush()
    os._exit(code)  # what the parent would clean up is the parent's


def _follow(sweep: Sweep, processes: Sequence[BaseProcess], update: Callable[[], int]) -> None:
    """Wait for the processes; pass a signal on, and stop all when one fails."""
    told = False
    while running := [process for process in processes if process.exitcode is None]:
        wait([process.sentinel for process in running], LOOK_SECONDS)
        failed = any(process.exitcode for process in processes)
        if (sweep.signals.received or failed) and not told:
            told = True
            _send(processes, sweep.signals.received or signal.SIGTERM)
        update()


@contextmanager
def _all_ended(processes: Sequence[BaseProcess]) -> Iterator[None]:
    """Leave no process behind, whatever happens."""
    try:
        yield
    finally:
        _send(processes, signal.SIGKILL)
        for process in processes:
            if process.pid is not None:
                process.join()


def _send(processes: Sequence[BaseProcess], number: int) -> None:
    for process in processes:
        if process.pid is not None and process.exitcode is None:
            os.kill(process.pid, number)


def _fail(code: int) -> None:
    if code > 0:
        sys.exit(code)
    name = signal.Signals(-code).name
    raise MpisimError(f"a process of the sweep was killed by {name}; {GO_ON}")
