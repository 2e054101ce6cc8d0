"""The entry point: finds the sub-command, runs it, and turns errors into one line and a code."""

from __future__ import annotations

import contextlib
import os
import pkgutil
import signal
import sys
import time
from collections.abc import Collection
from typing import NoReturn

from mpisim.cli.parser import Parser
from mpisim.comm import launcher
from mpisim.core.errors import InputError, MpisimError, suggestion
from mpisim.core.terminal import PrintableStream, one_line, open_standard_streams, report
from mpisim.core.version import VERSION

# Each sub-command: the function that adds its arguments, imported when it is needed, and its help.
COMMANDS = {
    "run": ("run:add", "run an experiment, with or without mpirun in front"),
    "sweep": ("sweep:add", "run the missing points of a grid"),
    "tune": ("tune:add", "run a grid of step sizes and pick the best"),
    "theory": ("theory:add", "print what the theorems say about an experiment"),
    "plot": ("plot:add", "draw curves from logs"),
    "show": ("show:add", "print the settings, last values, bits and seconds by phase of a log"),
    "list": ("list:add", "list the runs of a folder: what varies, status, last values"),
    "table": ("table:add", "print the rounds, bits and seconds that runs need to reach a target"),
    "export": ("export:add", "write the rows of logs as CSV or Parquet"),
    "report": ("report:add", "write a page for the browser about the runs of a folder"),
    "verify": ("verify:add", "check a log; with --rerun, repeat its run"),
    "study": ("study:add", "list, run and draw the figures of a study"),
    "new": ("new:add", "make a compressor, estimator, problem or study from a template"),
    "check": ("check:add", "check what a plugin registers: constants, messages, gradients, runs"),
    "figure": ("figure:add", "draw a figure of a study from its logs"),
    "claims": ("claims:add", "print the verdicts on the claims of figures"),
    "data": ("data:add", "list, describe, fetch or generate data sets"),
    "info": ("info:add", "print versions, MPI, threads and cores of this installation"),
    "completion": ("completion:add", "print a script that completes commands in bash, zsh or tcsh"),
}
REPORT_SECONDS = 1.0  # that rank 0 has to report an error before mpirun ends it for others


def main(argv: list[str] | None = None) -> int:
    """Run a command line; returns the exit code."""
    argv = sys.argv[1:] if argv is None else argv
    output = PrintableStream(sys.stdout)
    with contextlib.redirect_stdout(output):  # type: ignore[type-var]
        try:
            args = _parser(argv).parse_args(argv)
            code = args.command(args, argv)
        except MpisimError as error:
            code = error.exit_code
            _report(str(error))
        except KeyboardInterrupt:
            code = 128 + signal.SIGINT
            _report("stopped by Ctrl-C")
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
    open_standard_streams()
    sys.exit(main())


def _report(message: str) -> None:
    """The one line about an error, on rank 0."""
    if launcher.rank() == 0:
        report(f"mpisim: {one_line(message)}")
    elif "mpi4py.MPI" not in sys.modules:  # there is no MPI yet to agree on the end
        time.sleep(REPORT_SECONDS)


def whole_parser() -> Parser:
    """The parser, with the arguments of all sub-commands."""
    return _with_arguments(COMMANDS)


def _parser(argv: list[str]) -> Parser:
    """The parser, with the arguments of the sub-command in ``argv`` only."""
    command = [word for word in argv if not word.startswith("-")][:1]
    if command == argv[:1] and not COMMANDS.keys() >= set(command):
        known = f"{suggestion(command[0], COMMANDS)}known: {', '.join(COMMANDS)}"
        raise InputError(f"unknown command {command[0]!r}; {known}")
    return _with_arguments(command)


def sentence(text: str) -> str:
    """A line of help as a sentence."""
    return f"{text[0].upper()}{text[1:]}."


def _with_arguments(chosen: Collection[str]) -> Parser:
    parser = Parser(
        prog="mpisim", description="Compressed distributed optimisation on MPI, with real bits."
    )
    parser.add_argument("--version", action="version", version=f"mpisim {VERSION}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, (place, text) in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=sentence(text))
        if name in chosen:
            pkgutil.resolve_name(f"mpisim.cli.{place}")(command)
    return parser
