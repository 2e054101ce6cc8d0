"""The entry point: finds the sub-command, runs it, and turns errors into one line and a code."""

from __future__ import annotations

import argparse
import contextlib
import os
import pkgutil
import sys
import time
import warnings
from collections.abc import Callable, Collection
from typing import NoReturn

from mpisim.cli.parser import Parser
from mpisim.core import launcher
from mpisim.core.errors import (
    InputError,
    MpisimError,
    interruption,
    suggestion,
    terminable,
)
from mpisim.core.machine import reading_budget
from mpisim.core.terminal import PrintableStream, one_line, open_standard_streams, report
from mpisim.core.version import VERSION

# Each sub-command: the function that adds its arguments, imported when it is needed, and its help.
COMMANDS = {
    "run": ("run:add", "run an experiment, with or without mpirun in front"),
    "sweep": ("sweep:add", "run the missing points of a grid"),
    "tune": ("sweep:add_tune", "run a grid of step sizes and pick the best"),
    "theory": ("theory:add", "print what the theorems say about an experiment"),
    "show": ("show:add", "print logs: one log, the runs of a folder, or the cost of a target"),
    "plot": ("plot:add", "draw logs: a figure, or a page for the browser"),
    "export": ("show:add_export", "write the rows of logs as CSV or Parquet"),
    "verify": ("verify:add", "check a log or an archive; with --rerun, repeat its runs"),
    "study": ("study:add", "list, run and draw the figures of a study; print its claims"),
    "artifact": ("verify:add_artifact", "write one archive of a study for others to check"),
    "new": ("new:add", "make a compressor, method, problem, column, study or job from a template"),
    "check": ("check:add", "check what a plugin registers: constants, messages, gradients, runs"),
    "fleet": ("fleet:add", "print seconds until a target if each client had a link of its own"),
    "card": ("card:add", "print what a compressor sends and loses, measured"),
    "methods": ("names:add_methods", "list the methods, or describe one"),
    "compressors": ("names:add_compressors", "list the compressors, or describe one"),
    "problems": ("names:add_problems", "list the problems, or describe one"),
    "data": ("data:add", "list, describe, fetch, convert or generate data sets"),
}
# Commands of mpisim 1.0, with what they are now. They go with the next version.
RENAMED = {
    "list": ("show",),
    "table": ("show",),
    "report": ("plot",),
    "figure": ("study", "--draw"),
    "claims": ("study", "--claims"),
    "info": ("--info",),
    "completion": ("--completion",),
}
SHELLS = {
    "bash": "mpisim --completion bash > ~/.local/share/bash-completion/completions/mpisim",
    "zsh": "mpisim --completion zsh > ~/.zfunc/_mpisim, with ~/.zfunc in fpath",
    "tcsh": "mpisim --completion tcsh > ~/.mpisim.tcsh, which ~/.tcshrc sources",
}
REPORT_SECONDS = 1.0  # that rank 0 has to report an error before mpirun ends it for others


def main(argv: list[str] | None = None) -> int:
    """Run a command line; returns the exit code."""
    argv = sys.argv[1:] if argv is None else argv
    output = PrintableStream(sys.stdout)
    with contextlib.redirect_stdout(output), terminable():  # type: ignore[type-var]
        try:
            with reading_budget():
                argv = _renamed(argv)
                args = _parser(argv).parse_args(argv)
                code = args.command(args, argv)
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
    if launcher.rank() == 0:
        report(f"mpisim: {one_line(message)}")
    elif "mpi4py.MPI" not in sys.modules:  # there is no MPI yet to agree on the end
        time.sleep(REPORT_SECONDS)


def _renamed(argv: list[str]) -> list[str]:
    """The command line in today's words, with a line about them on standard error."""
    if not argv or argv[0] not in RENAMED:
        return argv
    words = RENAMED[argv[0]]
    if launcher.rank() == 0:
        report(f"mpisim: `mpisim {argv[0]}` is now `mpisim {' '.join(words)}`")
    return [*words, *argv[1:]]


def _parser(argv: list[str]) -> Parser:
    """The parser, with the arguments of the sub-command in ``argv`` only."""
    command = [word for word in argv if not word.startswith("-")][:1]
    if command == argv[:1] and not COMMANDS.keys() >= set(command):
        hint = f"{suggestion(command[0], COMMANDS)}known: {', '.join(COMMANDS)}"
        raise InputError(f"unknown command {command[0]!r}; {hint}")
    return _with_arguments(command)


def _with_arguments(chosen: Collection[str]) -> Parser:
    parser = Parser(
        prog="mpisim", description="Compressed distributed optimisation on MPI, with real bits."
    )
    parser.add_argument("--version", action="version", version=f"mpisim {VERSION}")
    commands = parser.add_subparsers(metavar="COMMAND")
    for name, (place, text) in COMMANDS.items():
        sentence = f"{text[0].upper()}{text[1:]}."
        command = commands.add_parser(name, help=text, description=sentence)
        if name in chosen:
            pkgutil.resolve_name(f"mpisim.cli.{place}")(command)
    parser.add_argument(
        "--info",
        action="store_const",
        dest="command",
        const=_info,
        default=lambda *_: parser.error("the following arguments are required: COMMAND"),
        help="print versions, MPI, threads and cores of this installation",
    )
    parser.add_argument(
        "--completion",
        metavar="|".join(SHELLS),
        dest="command",
        type=_completion,
        help="print a script that completes commands, flags, files, settings and names: "
        + "; ".join(SHELLS.values()),
    )
    return parser


def _info(args: argparse.Namespace, argv: list[str]) -> int:
    from mpisim.runs.host import info_text

    print(info_text())
    return 0


def _completion(shell: str) -> Callable[..., int]:
    """The command that prints the script of a shell, made from the parsers of all sub-commands."""
    if shell not in SHELLS:
        raise argparse.ArgumentTypeError(
            f"{shell!r} is not allowed; it must be {', '.join(SHELLS)}"
        )

    def command(args: argparse.Namespace, argv: list[str]) -> int:
        from mpisim.cli.completion import script

        print(script(_with_arguments(COMMANDS), shell))
        return 0

    return command
