"""Starting MPI, and ending the whole job when one rank fails.

An exception that leaves one rank while others wait in MPI would hang them all, so every way out of
a command goes through `guarded`: the exit code is agreed on or the job is aborted with it.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable

from mpisim.errors import MpisimError

GRACE_SECONDS = 1.0  # rank 0 speaks first; another rank speaks only if rank 0 had nothing to say


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
