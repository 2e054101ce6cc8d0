"""The command line: one function for each sub-command. Argument errors end with exit code 2."""

from __future__ import annotations

import argparse
import hashlib
import importlib
import os
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from mpisim.cli.parser import add_experiment
from mpisim.core.errors import InputError, MpisimError
from mpisim.core.version import VERSION

if TYPE_CHECKING:
    from mpisim.runs.experiment import Experiment

# The rank as the launcher tells it, before MPI starts (Open MPI, PMIx, MPICH, Slurm).
RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")
LAST_WORD = 1.0  # seconds that rank 0 has to say what is wrong before mpirun ends it for others


class Parser(argparse.ArgumentParser):
    """Reports a mistake as one line, like every other bad input."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message} (see {self.prog} --help)")


def main(argv: list[str] | None = None) -> int:
    """Run a command line; returns the exit code."""
    argv = sys.argv[1:] if argv is None else argv
    try:
        args = _parser().parse_args(argv)
        return args.command(args, argv)
    except MpisimError as error:
        if _launched_rank() == 0:
            print(f"mpisim: {error}", file=sys.stderr, flush=True)
        elif "mpi4py.MPI" not in sys.modules:  # no MPI yet to agree by when to leave
            time.sleep(LAST_WORD)
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def console() -> NoReturn:
    """The console script."""
    sys.exit(main())


def _launched_rank() -> int:
    return next((int(os.environ[v]) for v in RANK_VARIABLES if os.environ.get(v, "").isdigit()), 0)


def _parser() -> Parser:
    parser = Parser(
        prog="mpisim", description="Compressed distributed optimisation on MPI, with real bits."
    )
    parser.add_argument("--version", action="version", version=f"mpisim {VERSION}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_run(commands.add_parser("run", help="run an experiment, with or without mpirun in front"))
    _add_sweeps(commands)
    _add_theory(commands.add_parser("theory", help="what the theorems say about an experiment"))
    plot = commands.add_parser("plot", help="draw curves from logs")
    _add_plot(plot)
    show = commands.add_parser(
        "show", help="what a log holds: settings, last values, bits, time by phase"
    )
    show.add_argument("log", metavar="LOG", type=Path)
    show.set_defaults(command=show_command)
    _add_verify(commands.add_parser("verify", help="check a log; with --rerun, repeat the run"))
    _add_figures(commands)
    _add_data(commands.add_parser("data", help="list, describe, fetch or generate data sets"))
    info = commands.add_parser("info", help="versions, MPI, threads and cores of this installation")
    info.set_defaults(command=info_command)
    return parser


def _add_run(parser: argparse.ArgumentParser) -> None:
    add_experiment(parser)
    parser.add_argument(
        "--workers", metavar="N", type=int, help="the same as --set problem.workers=N"
    )
    parser.add_argument(
        "--out", metavar="LOG.h5", type=Path, help="the log (default: logs/NAME-HASH.h5)"
    )
    parser.add_argument("--resume", action="store_true", help="go on from the log's checkpoint")
    parser.add_argument("--force", action="store_true", help="overwrite an existing log")
    parser.set_defaults(command=run_command)


def run_command(args: argparse.Namespace, argv: list[str]) -> int:
    """``mpisim run``."""
    from mpisim.runs.launch import guarded

    def body(comm) -> int:
        from mpisim.runs.experiment import read
        from mpisim.runs.loop import run
        from mpisim.runs.record import Output

        for module in args.plugin:
            import_plugin(module)
        workers = [] if args.workers is None else [f"problem.workers={args.workers}"]
        experiment = read(args.file, args.set + workers)
        out = args.out or _default_log(args.file, experiment)
        output = Output(out, args.force, args.resume, shlex.join(["mpisim", *argv]))
        result = run(experiment, output, comm)
        if comm.rank == 0:
            row = result.row
            print(
                f"{result.status}: round {row.round}, loss {row.loss:.6g},"
                f" |grad f|^2 {row.grad_norm_sq:.6g}, log {out}"
            )
        return {"interrupted": 130, "terminated": 143}.get(result.status, 0)

    return guarded(body)


def _default_log(file: Path | None, experiment: Experiment) -> Path:
    """Named by content: the same experiment has the same name, another has another."""
    stem = file.stem if file else experiment.method.name
    return (
        Path("logs") / f"{stem}-{hashlib.sha256(experiment.to_toml().encode()).hexdigest()[:8]}.h5"
    )


def import_plugin(module: str) -> None:
    """``--plugin MODULE``: looked for in the current folder, too."""
    sys.path.insert(0, os.getcwd())
    try:
        importlib.import_module(module)
    except ImportError as error:
        raise InputError(f"--plugin {module}: cannot be imported: {error}") from None
    finally:
        sys.path.pop(0)


def _add_sweeps(commands: argparse._SubParsersAction) -> None:
    from mpisim.cli import sweep as command

    command.add_sweep(commands.add_parser("sweep", help="run what is missing of a grid"))
    command.add_tune(commands.add_parser("tune", help="run a grid of steps and pick the best"))


def _add_theory(parser: argparse.ArgumentParser) -> None:
    from mpisim.cli import theory as command

    command.add_theory(parser)


def _add_verify(parser: argparse.ArgumentParser) -> None:
    from mpisim.cli import verify as command

    command.add_verify(parser)


def _add_plot(parser: argparse.ArgumentParser) -> None:
    from mpisim.cli import plot as command

    command.add_arguments(parser)
    parser.set_defaults(command=lambda args, argv: command.run(args))


def _add_figures(commands: argparse._SubParsersAction) -> None:
    from mpisim.cli import figure as command

    command.add_figure(commands.add_parser("figure", help="a paper's figure and claims from logs"))
    command.add_claims(commands.add_parser("claims", help="what the figures' logs say of claims"))


def show_command(args: argparse.Namespace, argv: list[str]) -> int:
    """``mpisim show``."""
    from mpisim.analysis.show import show_text

    print(show_text(args.log))
    return 0


def _add_data(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    actions.add_parser("list", help="what is known, and what is here").set_defaults(
        action="list_text"
    )
    for action, function, text in (
        ("info", "info_text", "describe and verify"),
        ("fetch", "fetch", "download and verify"),
    ):
        sub = actions.add_parser(action, help=f"{text} data sets")
        sub.add_argument("names", metavar="NAME", nargs="+")
        sub.set_defaults(action=function)
    sample = actions.add_parser("sample", help="generate the small sample, shaped like a small a9a")
    sample.add_argument("names", metavar="FILE", nargs="?", default="datasets/sample")
    sample.set_defaults(action="sample")
    parser.set_defaults(command=data_command)


def data_command(args: argparse.Namespace, argv: list[str]) -> int:
    """``mpisim data``."""
    from mpisim.cli import data as commands

    function = getattr(commands, args.action)
    if args.action == "list_text":
        print(function())
    elif args.action == "sample":
        print(function(args.names))
    else:
        for name in args.names:
            print(function(name))
    return 0


def info_command(args: argparse.Namespace, argv: list[str]) -> int:
    """``mpisim info``."""
    from mpisim.runs.sysinfo import info_text

    print(info_text())
    return 0
