"""The entry point: finds the sub-command, runs it, and turns errors into one line and a code.

Also the start of a command on all ranks, with its plugins, and of MPI where there are several.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pkgutil
import shlex
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

from mpisim.cli.parser import COMMANDS, TABLE, Parser, completion_script, make_parser
from mpisim.core import machine
from mpisim.core.errors import InputError, MpisimError, interruption, suggestion, terminable
from mpisim.core.machine import launched, reading_budget
from mpisim.core.terminal import PrintableStream, one_line, open_standard_streams, report

REPORT_SECONDS = 1.0  # that rank 0 has to report an error before mpirun ends it for others


def main(argv: list[str] | None = None) -> int:
    """Run a command line; returns the exit code."""
    argv = sys.argv[1:] if argv is None else argv
    output = PrintableStream(sys.stdout)
    with contextlib.redirect_stdout(output), terminable():  # type: ignore[type-var]
        try:
            with reading_budget():
                argv = _renamed(argv)
                code = _run(parser_for(argv).parse_args(argv, argparse.Namespace(argv=argv)))
        except MpisimError as error:
            code = error.exit_code
            _report(str(error))
        except KeyboardInterrupt as error:
            code, line = interruption(error)
            _report(line)
        finally:
            output.flush()
    if output.error is not None:
        if not isinstance(output.error, BrokenPipeError):  # its reader has what it wanted
            code = code or 1
            _report(f"standard output: cannot be written: {output.error.strerror}")
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def console() -> NoReturn:
    """`main` in a process of its own. NumPy's warnings of numbers in logs are no help to a user."""
    open_standard_streams()
    warnings.filterwarnings("ignore", "", RuntimeWarning, r"(mpisim|numpy|matplotlib)\.")
    sys.exit(main())


def _report(message: str) -> None:
    """The one line about an error, on rank 0."""
    if machine.launched_rank() == 0:
        report(f"mpisim: {one_line(message)}")
    elif "mpi4py.MPI" not in sys.modules:  # there is no MPI yet to agree on the end
        time.sleep(REPORT_SECONDS)


def _renamed(argv: list[str]) -> list[str]:
    """The command line in today's words, with a line about them on standard error."""
    words = TABLE["renamed"].get(argv[0]) if argv else None
    if words is None:
        return argv
    if machine.launched_rank() == 0:
        report(f"mpisim: `mpisim {argv[0]}` is now `mpisim {' '.join(words)}`")
    return [*words, *argv[1:]]


def parser_for(argv: list[str]) -> Parser:
    """The parser, with the arguments of the command in ``argv`` only."""
    command = [word for word in argv if not word.startswith("-")][:1]
    if command == argv[:1] and not COMMANDS.keys() >= set(command):
        hint = f"{suggestion(command[0], COMMANDS)}known: {', '.join(COMMANDS)}"
        raise InputError(f"unknown command {command[0]!r}; {hint}")
    return make_parser(command)


def _run(args: argparse.Namespace) -> int:
    """Call the function of the command, in a module that is imported only now.

    It returns the exit code, or None for 0.
    """
    if args.call is not None:
        return pkgutil.resolve_name(f"mpisim.cli.{args.call}")(args) or 0
    if args.completion:
        print(completion_script(make_parser(COMMANDS), args.completion))
    elif args.info:
        from mpisim.runs.host import info_text

        print(info_text())
    else:
        make_parser(()).error("the following arguments are required: COMMAND")
    return 0


# for the commands


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


def settings_of(args: argparse.Namespace, table: str, what: str) -> dict[str, Any]:
    """The keys that --set gives to ``table``, the only one that ``what`` has."""
    from mpisim.runs.experiment import apply

    tables: dict[str, Any] = {table: {}}
    for setting in args.set:
        apply(tables, setting)
        if tables.keys() != {table} or not isinstance(tables[table], dict):
            only = f"{what} has keys of {table} alone, {table}.KEY=VALUE"
            raise InputError(f"--set {setting}: {only}")
    return tables[table]


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
        allowed = "one that `mpisim --info` finds, see docs/install.md"
        raise InputError(f"MPI cannot be loaded: {error}; allowed: {allowed}") from None
