"""The sub-commands `mpisim sweep` and `mpisim tune`."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from mpisim.cli.parser import (
    ACCEPT,
    PLUGIN,
    SET,
    add_spread,
    arguments,
    command_line,
    run_sweeps,
    spread_of,
)
from mpisim.core.terminal import report
from mpisim.runs.sweep.points import Point, Shard, exit_code

GRID = {
    "file FILE.toml": "the experiment file, with a table [sweep]",
    SET: "set a key at every point; sweep.TABLE.KEY=[...] changes the grid",
    **PLUGIN,
    "--out FOLDER": "write the logs here (default: sweep.folder)",
    **ACCEPT,
}
SHARD = {
    "--shard I/N": "run only every N-th point, from the I-th on, as for the tasks of a Slurm array"
}
TUNE = {
    "--multiples M,M,...": "try these multiples of the theory step, such as 0.5,1,2 (default: the"
    " file's grid)",
    "--criterion RULE": "pick the best step by this rule (default: %(default)s); see"
    " docs/how-to/sweeps.md",
}


def add(parser: argparse.ArgumentParser) -> None:
    arguments(parser, GRID | SHARD, shard={"type": _shard, "default": Shard()})
    add_spread(parser)
    parser.set_defaults(command=sweep_command)


def _shard(text: str) -> Shard:
    match = re.fullmatch(r"(\d+)/(\d+)", text, re.ASCII)
    shard = Shard(int(match[1]), int(match[2])) if match else Shard(0)
    if not 1 <= shard.part <= shard.parts:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not allowed; it must be I/N with integers 1 <= I <= N"
        )
    return shard


def sweep_command(args: argparse.Namespace, argv: list[str]) -> int:
    """Run ``mpisim sweep``."""
    return run_sweeps(args, lambda comm: exit_code(run_grid(args, argv, comm)[1]))


def run_grid(args: argparse.Namespace, argv: list[str], comm) -> tuple[Path, list[Point]]:
    """Run what is missing of the grid; the folder of the logs, and all points."""
    from mpisim.comm.job import on_first
    from mpisim.runs.experiment import read_toml
    from mpisim.runs.sweep.executor import sweep
    from mpisim.runs.sweep.grid import read
    from mpisim.runs.sweep.points import counts

    folder, grid = on_first(comm, lambda: read(args.file, args.set))
    if comm.rank == 0 and len(grid) == 1 and "sweep" not in read_toml(args.file):
        report(f"mpisim: {args.file}: has no [sweep], so it is a grid of one point")
    folder = args.out or folder
    how = command_line(argv), args.accept_changes, spread_of(args)
    points = sweep(folder, grid, comm, *how)
    if comm.rank == 0:
        print(f"{counts(points)}; logs in {folder}", flush=True)
    return folder, points


def add_tune(parser: argparse.ArgumentParser) -> None:
    from mpisim.analysis.tune import CRITERIA, DEFAULT

    rules = {"choices": CRITERIA, "default": DEFAULT, "metavar": None}
    arguments(parser, GRID | TUNE, criterion=rules)
    add_spread(parser)
    parser.set_defaults(command=tune_command)


def tune_command(args: argparse.Namespace, argv: list[str]) -> int:
    if args.multiples is not None:
        args.set.append(f"sweep.multiples=[{args.multiples}]")

    def body(comm) -> int:
        from mpisim.analysis.tune import report

        folder, points = run_grid(args, argv, comm)
        code = exit_code(points)
        if comm.rank == 0 and code == 0:
            print(report(points, args.criterion, folder))
        return code

    return run_sweeps(args, body)
