"""The sub-command `mpisim study`."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from mpisim.cli.figure import PICTURES

if TYPE_CHECKING:
    from mpi4py import MPI


def add_study(parser: argparse.ArgumentParser) -> None:
    """The flags of `mpisim study`."""
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
    parser.add_argument(
        "--scale", default="quick", help="how much is run: quick or paper (default: %(default)s)"
    )
    parser.add_argument(
        "--out", metavar="FOLDER", type=Path, default=PICTURES, help="of pictures and claims"
    )
    parser.add_argument(
        "--extras",
        action="store_true",
        help="print the extras of mpisim that the figure needs, and do nothing else",
    )
    parser.set_defaults(command=study_command)


def study_command(args: argparse.Namespace, argv: list[str]) -> int:
    """``mpisim study``: lists studies, or the figures of one, or runs and draws a figure."""
    from mpisim.analysis.study.load import FILE
    from mpisim.comm.job import guarded

    if args.figure is None and args.folder.is_dir() and not (args.folder / FILE).exists():
        return _list(args.folder)
    return guarded(lambda comm: _study(args, shlex.join(["mpisim", *argv]), comm))


def _list(folder: Path) -> int:
    """The studies of a folder and their figures, under the names of the make targets."""
    from mpisim.analysis.study import studies

    for study in studies(folder):
        print(f"{study.folder}: {study.title}")
        for figure in study.figures.values():
            print(f"  {study.full_name(figure):<16} {figure.title}")
    return 0


def _study(args: argparse.Namespace, command: str, comm: MPI.Intracomm) -> int:
    from mpisim.analysis.study import load
    from mpisim.analysis.study.draw import draw, overview
    from mpisim.cli.sweep import exit_code
    from mpisim.comm.job import on_first

    study = load(args.folder)  # on every rank: it may define compressors of its own
    if args.figure is None:
        text, code = on_first(comm, lambda: overview(study, args.scale, args.out, comm.size)), 0
    elif args.extras:
        text, code = " ".join(study.figure(args.figure).source.extras(study, args.scale)), 0
    else:
        figure = study.figure(args.figure)
        points = figure.source.complete(study, figure, args.scale, comm, command)
        code = exit_code(list(points))
        text = on_first(comm, lambda: draw(study, figure, None, args.out)) if code == 0 else ""
    if comm.rank == 0 and text:
        print(text)
    return code
