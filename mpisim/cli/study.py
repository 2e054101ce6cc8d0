"""The sub-command `mpisim study`."""

from __future__ import annotations

import argparse
import time
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
from mpisim.core.errors import InputError

if TYPE_CHECKING:
    from mpi4py import MPI

    from mpisim.analysis.study import Study


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `mpisim study`."""
    parser.add_argument(
        "folder",
        metavar="FOLDER",
        nargs="?",
        type=Path,
        default=Path("run"),
        help="a study, or a folder of studies to list (default: run)",
    )
    parser.add_argument(
        "figure",
        metavar="FIGURE",
        nargs="?",
        help="run what this figure lacks, and draw it (default: list the figures)",
    )
    parser.add_argument(
        "--scale", default="quick", help="run at this scale: quick (default) or paper"
    )
    add_out(parser)
    modes = parser.add_mutually_exclusive_group()
    record = "also write picture, claims and settings to FOLDER/results, with a page of them"
    modes.add_argument("--record", action="store_true", help=record)
    extras = "only print which extras of mpisim FIGURE needs"
    modes.add_argument("--extras", action="store_true", help=extras)
    ranks = "only print how many ranks the runs of FIGURE need, if they set run.ranks"
    modes.add_argument("--ranks", action="store_true", help=ranks)
    add_spread(parser)
    add_accept(parser)
    add_plugin(parser)
    parser.set_defaults(command=study_command)


def study_command(args: argparse.Namespace, argv: list[str]) -> int:
    """Run ``mpisim study``: list studies, or the figures of one, or run and draw a figure."""
    from mpisim.analysis.study.load import FILE, studies

    if args.figure is None and args.folder.is_dir() and not (args.folder / FILE).exists():
        if args.record:
            raise InputError(f"--record: {args.folder} holds studies; name one of them")
        for study in studies(args.folder):
            print(f"{study.folder}: {study.title}")
            for figure in study.figures.values():
                print(f"  {study.full_name(figure):<16} {figure.title}")
        return 0
    return run_sweeps(args, lambda comm: _study(args, command_line(argv), comm))


def _study(args: argparse.Namespace, command: str, comm: MPI.Intracomm) -> int:
    from mpisim.analysis.study import load
    from mpisim.comm.job import on_first

    study, code = load(args.folder), 0  # on every rank: it may define compressors of its own
    if args.figure is None:
        text = on_first(comm, lambda: _whole(study, args, comm.size))
    elif args.extras:
        text = study.figure(args.figure).source.extras(study.folder, args.scale)
    elif args.ranks:
        source = study.figure(args.figure).source
        text = str(on_first(comm, lambda: source.ranks(study.folder, args.scale)) or "")
    else:
        code, text = _figure(study, args, command, comm)
    if comm.rank == 0 and text:
        print(text)
    return code


def _whole(study: Study, args: argparse.Namespace, ranks: int) -> str:
    """The list of figures; with --record the page of its results, made again."""
    from mpisim.analysis.results import write_page
    from mpisim.analysis.study.figure import overview

    if args.record:
        return str(write_page(study.folder))
    return overview(study, args.scale, args.out, ranks)


def _figure(
    study: Study, args: argparse.Namespace, command: str, comm: MPI.Intracomm
) -> tuple[int, str]:
    """Run what a figure lacks, draw it, and put it on record if asked to; code and text."""
    from mpisim.analysis.results import record
    from mpisim.analysis.study import Job
    from mpisim.analysis.study.figure import draw, write_drawn
    from mpisim.comm.job import on_first
    from mpisim.runs.sweep.points import exit_code

    figure, began = study.figure(args.figure), time.monotonic()
    how = comm, command, args.accept_changes, spread_of(args)
    code = exit_code(figure.source.complete(Job(study.folder, args.scale, *how)))
    seconds = time.monotonic() - began

    def drawn() -> str:
        found = draw(study, figure)
        text = write_drawn(found, args.out)
        paths = record(found, args.scale, seconds) if args.record else []
        return "\n".join([text, *([", ".join(map(str, paths))] if paths else [])])

    return code, on_first(comm, drawn) if code == 0 else ""
