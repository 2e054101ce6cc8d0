"""The sub-command `mpisim plot`."""

from __future__ import annotations

import argparse
from pathlib import Path


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("logs", metavar="LOG", nargs="+", type=Path, help="HDF5 logs of runs")
    parser.add_argument(
        "--x",
        metavar="COLUMN",
        help="a column of the logs, seconds or bits_total (default: bits_up)",
    )
    parser.add_argument(
        "--y", metavar="COLUMN", default="grad_norm_sq", help="the same (default: grad_norm_sq)"
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, required=True, help="the figure, .png or .pdf"
    )
    parser.add_argument(
        "--network",
        metavar="RATE,LATENCY",
        help="x is the modelled seconds on such a network: 100mbit,1ms; see docs/netlab.md",
    )
    parser.add_argument("--title", help="the title (default: what the logs share)")
    parser.add_argument("--linear-x", action="store_true", default=None, help="a linear x axis")
    parser.add_argument("--linear-y", action="store_true", help="a linear y axis")
    parser.add_argument(
        "--all-workers",
        action="store_true",
        help="bits and gradients summed over workers, not per worker",
    )
    parser.set_defaults(command=plot_command)


def plot_command(args: argparse.Namespace, argv: list[str]) -> int:
    from mpisim.analysis.api import plot
    from mpisim.analysis.link_model import parse

    plot(
        args.logs,
        args.x or ("bits_up" if args.network is None else "seconds"),
        args.y,
        args.output,
        per_worker=not args.all_workers,
        linear_x=args.linear_x,
        linear_y=args.linear_y,
        title=args.title,
        network=None if args.network is None else parse(args.network),
    )
    print(args.output)
    return 0
