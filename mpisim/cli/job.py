"""The start of a command on all ranks, with its plugins, and of MPI where there are several."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Callable

from mpisim.core.errors import InputError
from mpisim.core.launcher import launched


def command_line(argv: list[str]) -> str:
    """The command as a shell takes it, for the log: text in UTF-8."""
    return os.fsencode(shlex.join(["mpisim", *argv])).decode(errors="replace")


def on_all_ranks(args: argparse.Namespace, body: Callable[..., int]) -> int:
    """Load the plugins and call ``body`` on all ranks; the exit code."""
    require_mpi()
    from mpisim.runs import plugins
    from mpisim.runs.host import guarded

    def with_plugins(comm) -> int:
        plugins.load(args.plugin)
        return body(comm)

    return guarded(with_plugins)


def on_first_rank(args: argparse.Namespace, body: Callable[[], object]) -> int:
    """Load the plugins on all ranks and call ``body`` on rank 0; the exit code of success."""

    def on_rank(comm) -> int:
        if comm.rank == 0:
            body()
        return 0

    return on_all_ranks(args, on_rank)


def run_sweeps(args: argparse.Namespace, body: Callable[..., int]) -> int:
    """`on_all_ranks`; with --jobs, which forks processes, MPI must not start."""
    if args.jobs and launched():
        raise InputError("--jobs: is for one process; under mpirun the ranks run side by side")
    return on_all_ranks(args, body)


def prepare_mpi() -> None:
    """Let MPI start where it is imported in a job of mpirun, by a plugin say; elsewhere not."""
    import mpi4py

    mpi4py.rc.initialize = launched()


def require_mpi() -> None:
    """Start MPI in a job of mpirun, the only one that uses it.

    `InputError` if that fails, because mpi4py has found no library, say.
    """
    prepare_mpi()
    if not launched():
        return
    try:
        from mpi4py import MPI  # noqa: F401
    except (ImportError, RuntimeError, OSError) as error:
        raise InputError(
            f"MPI cannot be loaded: {error}; allowed: one that `mpisim --info` finds, see"
            " docs/install.md"
        ) from None
