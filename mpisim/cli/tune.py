"""The sub-command `mpisim tune`."""

from __future__ import annotations

import argparse

from mpisim.analysis.tune import CRITERIA, DEFAULT
from mpisim.cli.parser import run_sweeps
from mpisim.cli.sweep import add_grid, run_grid
from mpisim.runs.sweep.points import exit_code


def add(parser: argparse.ArgumentParser) -> None:
    add_grid(parser)
    parser.add_argument(
        "--multiples",
        metavar="M,M,...",
        help="try these multiples of the theory step, such as 0.5,1,2 (default: the file's grid)",
    )
    parser.add_argument(
        "--criterion",
        choices=CRITERIA,
        default=DEFAULT,
        help="pick the best step by this rule (default: %(default)s); see docs/how-to/sweeps.md",
    )
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
