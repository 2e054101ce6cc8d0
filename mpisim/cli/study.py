"""The sub-command `mpisim study`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from mpisim.cli.figure import add_out
from mpisim.cli.parser import (
    add_accept,
    add_plugin,
    add_spread,
    command_line,
    run_sweeps,
    spread_of,
)

if TYPE_CHECKING:
    from mpi4py import MPI


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `mpisim study`."""
    parser.add_argument(
        "folder",
        metavar="FOLDER",
        nargs="?",
        type=Path,
        default=Path("run"),
        help="a study, or a folder of studies, which are listed (default: run)",
    )
    parser.add_argument(
        "figure",
        metavar="FIGURE",
        nargs="?",
        help="run what it lacks and draw it; without FIGURE the study's figures are listed",
    )
    parser.add_argument("--scale", default="quick", help="of the runs: quick (default) or paper")
    add_out(parser)
    extras = "only print what extras of mpisim FIGURE needs"
    parser.add_argument("--extras", action="store_true", help=extras)
    ranks = "only print how many ranks FIGURE's runs ask for with run.ranks, if they do"
    parser.add_argument("--ranks", action="store_true", help=ranks)
    add_spread(parser)
    add_accept(parser)
    add_plugin(parser)
    parser.set_defaults(command=study_command)


def study_command(args: argparse.Namespace, argv: list[str]) -> int:
    """Run ``mpisim study``: list studies, or the figures of one, or run and draw a figure."""
    from mpisim.analysis.study.load import FILE, studies

    if args.figure is None and args.folder.is_dir() and not (args.folder / FILE).exists():
        for study in studies(args.folder):
            print(f"{study.folder}: {study.title}")
            for figure in study.figures.values():
                print(f"  {study.full_name(figure):<16} {figure.title}")
        return 0
    return run_sweeps(args, lambda comm: _study(args, command_line(argv), comm))


def _study(args: argparse.Namespace, command: str, comm: MPI.Intracomm) -> int:
    from mpisim.analysis.study import load
    from mpisim.analysis.study.draw import draw, overview
    from mpisim.comm.job import on_first
    from mpisim.runs.sweep.points import exit_code

    study, code = load(args.folder), 0  # on every rank: it may define compressors of its own
    if args.figure is None:
        text = on_first(comm, lambda: overview(study, args.scale, args.out, comm.size))
    elif args.extras:
        text = study.figure(args.figure).source.extras(study.folder, args.scale)
    elif args.ranks:
        source = study.figure(args.figure).source
        text = str(on_first(comm, lambda: source.ranks(study.folder, args.scale)) or "")
    else:
        figure = study.figure(args.figure)
        how = command, args.accept_changes, spread_of(args)
        code = exit_code(list(figure.source.complete(study.folder, args.scale, comm, *how)))
        text = on_first(comm, lambda: draw(study, figure, None, args.out)) if code == 0 else ""
    if comm.rank == 0 and text:
        print(text)
    return code
