"""The sub-commands `mpisim sweep` and `mpisim tune`."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from mpisim.cli.parser import add_settings

if TYPE_CHECKING:
    from mpi4py import MPI

    from mpisim.runs.sweep.points import Point

CRITERIA = (
    "mean",
    "final",
    "loss",
    "mean-loss",
)  # of mpisim.analysis.tune, not imported just to parse


def add_sweep(parser: argparse.ArgumentParser) -> None:
    """The flags of `mpisim sweep`."""
    parser.add_argument("file", metavar="FILE.toml", type=Path, help="an experiment and its grid")
    add_settings(parser, "wins at every point; sweep.TABLE.KEY=[...] changes the grid")
    parser.add_argument(
        "--out", metavar="FOLDER", type=Path, help="of the logs (default: sweep.folder)"
    )
    parser.set_defaults(command=sweep_command)


def add_tune(parser: argparse.ArgumentParser) -> None:
    """The flags of `mpisim tune`."""
    add_sweep(parser)
    parser.add_argument(
        "--multiples",
        metavar="M,M,...",
        help="of the theory step, such as 0.25,0.5,1,2,4 (default: the grid of the file)",
    )
    parser.add_argument(
        "--criterion",
        choices=CRITERIA,
        default=CRITERIA[0],
        help="the rule by which one is the best; see docs/sweeps.md",
    )
    parser.set_defaults(command=tune_command)


def sweep_command(args: argparse.Namespace, argv: list[str]) -> int:
    """``mpisim sweep``."""
    from mpisim.runs.launch import guarded

    return guarded(lambda comm: exit_code(_sweep(args, argv, comm)[1]))


def tune_command(args: argparse.Namespace, argv: list[str]) -> int:
    """``mpisim tune``."""
    from mpisim.runs.launch import guarded

    if args.multiples is not None:
        args.set.append(f"sweep.multiples=[{args.multiples}]")

    def body(comm: MPI.Intracomm) -> int:
        from mpisim.analysis.tune import report

        folder, points = _sweep(args, argv, comm)
        code = exit_code(points)
        if comm.rank == 0 and code == 0:
            print(report(points, args.criterion, folder))
        return code

    return guarded(body)


def _sweep(
    args: argparse.Namespace, argv: list[str], comm: MPI.Intracomm
) -> tuple[Path, list[Point]]:
    from mpisim.cli.entry import import_plugin
    from mpisim.comm.job import on_first
    from mpisim.runs.sweep.grid import read
    from mpisim.runs.sweep.runner import counts, sweep

    for module in args.plugin:
        import_plugin(module)
    folder, grid = on_first(comm, lambda: read(args.file, args.set))
    folder = args.out or folder
    points = sweep(folder, grid, comm, shlex.join(["mpisim", *argv]))
    if comm.rank == 0:
        print(f"{counts(points)}; logs in {folder}", flush=True)
    return folder, points


def exit_code(points: list[Point]) -> int:
    """0 but for a sweep that was stopped: then the stopped run's."""
    codes = [p.exit_code for p in points if p.status in ("interrupted", "terminated")]
    return codes[0] if codes and codes[0] is not None else 0
