"""What sub-commands share: the parser, the arguments of an experiment, and the start of a job."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from mpisim.comm.launcher import launched
from mpisim.core.errors import InputError
from mpisim.core.machine import usable_cores

if TYPE_CHECKING:
    from mpisim.runs.sweep.points import Spread


class Parser(argparse.ArgumentParser):
    """Raises a mistake as `InputError`, one line like every other bad input."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message} (see {self.prog} --help)")


def add_experiment(parser: argparse.ArgumentParser) -> None:
    """Add FILE.toml, --set and --plugin: an experiment, with or without a file."""
    parser.add_argument(
        "file", metavar="FILE.toml", nargs="?", type=Path, help="the experiment file"
    )
    add_settings(parser, "set a key; wins over the file; repeatable")


def add_settings(parser: argparse.ArgumentParser, help: str) -> None:
    """Add --set, explained by ``help``, and --plugin."""
    parser.add_argument("--set", metavar="TABLE.KEY=VALUE", action="append", default=[], help=help)
    add_plugin(parser)


def add_accept(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--accept-changes",
        action="store_true",
        help="keep and continue what other code, libraries or processors have computed",
    )


def add_logs(parser: argparse.ArgumentParser) -> None:
    """Add LOG, of which there may be many."""
    parser.add_argument(
        "logs",
        metavar="LOG",
        nargs="+",
        type=Path,
        help="a log, a folder of logs, or a pattern such as 'logs/*.h5'",
    )


def add_framing(parser: argparse.ArgumentParser) -> None:
    """Add --framing."""
    text = "add framing to payload bits: headers, lengths and padding"
    parser.add_argument("--framing", action="store_true", default=None, help=text)


def add_target(parser: argparse.ArgumentParser, help: str) -> None:
    """Add --target."""
    parser.add_argument("--target", metavar="COLUMN=LEVEL", action="append", default=[], help=help)


def refuse(args: argparse.Namespace, names: Iterable[str], where: str) -> None:
    """`InputError` for the first of these options that was given: it has no meaning ``where``."""
    for name in names:
        if getattr(args, name):
            flag = getattr(args, name) if name == "form" else name.replace("_", "-")
            raise InputError(f"--{flag}: is not allowed {where}")


def add_plugin(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--plugin",
        metavar="MODULE|FILE.py",
        action="append",
        default=[],
        help="import your own compressors, methods, problems, ...; repeatable",
    )


def add_spread(parser: argparse.ArgumentParser) -> None:
    """Add --ranks-per-run and --jobs: how the points of a grid are dealt to processes."""
    parser.add_argument(
        "--ranks-per-run",
        metavar="R",
        type=int,
        default=1,
        help="give each point R of mpirun's ranks, and run points side by side (default: 1)",
    )
    parser.add_argument(
        "--jobs",
        metavar="N|auto",
        type=_jobs,
        default=0,
        help="without mpirun: run points side by side in N processes; auto: one for each core",
    )


def _jobs(text: str) -> int:
    number = len(usable_cores()) if text == "auto" else int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed; it must be at least 1 or auto")
    return number


def spread_of(args: argparse.Namespace) -> Spread:
    """What --ranks-per-run, --jobs and, where there is one, --shard say."""
    from mpisim.runs.sweep.points import Shard, Spread

    return Spread(args.ranks_per_run, args.jobs, getattr(args, "shard", Shard()))


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
