"""The sub-command `mpisim study`."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from mpisim.cli.figure import add_out

if TYPE_CHECKING:
    from mpi4py import MPI


def add_study(parser: argparse.ArgumentParser) -> None:
    """The flags of `mpisim study`."""
    add = parser.add_argument
    help = "a study, or a folder of studies, which are listed (default: run)"
    add("folder", metavar="FOLDER", nargs="?", type=Path, default=Path("run"), help=help)
    help = "run what it lacks and draw it; without FIGURE the study's figures are listed"
    add("figure", metavar="FIGURE", nargs="?", help=help)
    add("--scale", default="quick", help="how much is run: quick (default) or paper")
    add_out(parser)
    add("--extras", action="store_true", help="only print what extras of mpisim FIGURE needs")
    parser.set_defaults(command=study_command)


def study_command(args: argparse.Namespace, argv: list[str]) -> int:
    """``mpisim study``: lists studies, or the figures of one, or runs and draws a figure."""
    from mpisim.analysis.study import studies
    from mpisim.analysis.study.load import FILE
    from mpisim.comm.job import guarded

    if args.figure is None and args.folder.is_dir() and not (args.folder / FILE).exists():
        for study in studies(args.folder):
            print(f"{study.folder}: {study.title}")
            for figure in study.figures.values():
                print(f"  {study.full_name(figure):<16} {figure.title}")
        return 0
    return guarded(lambda comm: _study(args, shlex.join(["mpisim", *argv]), comm))


def _study(args: argparse.Namespace, command: str, comm: MPI.Intracomm) -> int:
    from mpisim.analysis.study import load
    from mpisim.analysis.study.draw import draw, overview
    from mpisim.cli.sweep import exit_code
    from mpisim.comm.job import on_first

    study, code = load(args.folder), 0  # on every rank: it may define compressors of its own
    if args.figure is None:
        text = on_first(comm, lambda: overview(study, args.scale, args.out, comm.size))
    elif args.extras:
        text = study.figure(args.figure).source.extras(study.folder, args.scale)
    else:
        figure = study.figure(args.figure)
        code = exit_code(list(figure.source.complete(study.folder, args.scale, comm, command)))
        text = on_first(comm, lambda: draw(study, figure, None, args.out)) if code == 0 else ""
    if comm.rank == 0 and text:
        print(text)
    return code
