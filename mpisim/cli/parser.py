"""What sub-commands share: the parser, the arguments of an experiment, and the start of a job."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from mpisim.core.errors import InputError


class Parser(argparse.ArgumentParser):
    """Raises a mistake as `InputError`, one line like every other bad input."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message} (see {self.prog} --help)")


def add_experiment(parser: argparse.ArgumentParser) -> None:
    """Add FILE.toml, --set and --plugin: an experiment, with or without a file."""
    parser.add_argument(
        "file", metavar="FILE.toml", nargs="?", type=Path, help="the experiment file"
    )
    add_settings(parser, "wins over the file; repeatable")


def add_settings(parser: argparse.ArgumentParser, help: str) -> None:
    """Add --set, explained by ``help``, and --plugin."""
    parser.add_argument("--set", metavar="TABLE.KEY=VALUE", action="append", default=[], help=help)
    add_plugin(parser)


def add_accept(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--accept-changes",
        action="store_true",
        help="keep, and go on with, what other code, libraries or processors have computed",
    )


def add_plugin(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--plugin",
        metavar="MODULE|FILE.py",
        action="append",
        default=[],
        help="import a module or a file with compressors, problems, ... of your own; repeatable",
    )


def command_line(argv: list[str]) -> str:
    """The command as a shell takes it, for the log: text in UTF-8."""
    return os.fsencode(shlex.join(["mpisim", *argv])).decode(errors="replace")


def on_all_ranks(args: argparse.Namespace, body: Callable[..., int]) -> int:
    """Load the plugins and call ``body`` on all ranks; the exit code."""
    require_mpi()
    from mpisim.runs import plugins
    from mpisim.runs.launch import guarded

    def with_plugins(comm) -> int:
        plugins.load(args.plugin)
        return body(comm)

    return guarded(with_plugins)


def require_mpi() -> None:
    """Load MPI; `InputError` if that fails, because mpi4py has found no library, say."""
    try:
        from mpi4py import MPI  # noqa: F401
    except (ImportError, RuntimeError, OSError) as error:
        raise InputError(
            f"MPI cannot be loaded: {error}; allowed: an installation that `mpisim info` finds, see"
            " docs/install.md"
        ) from None
