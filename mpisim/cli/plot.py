"""The sub-command `mpisim plot`."""

from __future__ import annotations

import argparse
from pathlib import Path

from mpisim.core.errors import InputError

OF_CURVES = ("x", "y", "network", "linear_x", "linear_y", "all_workers")


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("logs", metavar="LOG", nargs="+", type=Path, help="HDF5 logs of runs")
    parser.add_argument(
        "--x",
        metavar="COLUMN",
        help="a column of the logs, seconds or bits_total (default: bits_up)",
    )
    parser.add_argument("--y", metavar="COLUMN", help="the same (default: grad_norm_sq)")
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, required=True, help="the figure, .png or .pdf"
    )
    parser.add_argument(
        "--network",
        metavar="RATE,LATENCY",
        help="x is the modelled seconds on such a network: 100mbit,1ms; see docs/netlab.md",
    )
    parser.add_argument(
        "--breakdown",
        action="store_true",
        help="bars instead of curves: the seconds of a round by phase",
    )
    parser.add_argument("--title", help="the title (default: what the logs share)")
    parser.add_argument("--linear-x", action="store_true", default=None, help="a linear x axis")
    parser.add_argument("--linear-y", action="store_true", default=None, help="a linear y axis")
    parser.add_argument(
        "--all-workers",
        action="store_true",
        default=None,
        help="bits and gradients summed over workers, not per worker",
    )
    parser.set_defaults(command=plot_command)


def plot_command(args: argparse.Namespace, argv: list[str]) -> int:
    (_bars if args.breakdown else _curves)(args)
    print(args.output)
    return 0


def _curves(args: argparse.Namespace) -> None:
    from mpisim.analysis.api import plot
    from mpisim.analysis.link_model import parse

    plot(
        args.logs,
        args.x or ("bits_up" if args.network is None else "seconds"),
        args.y or "grad_norm_sq",
        args.output,
        per_worker=not args.all_workers,
        linear_x=args.linear_x,
        linear_y=bool(args.linear_y),
        title=args.title,
        network=None if args.network is None else parse(args.network),
    )


def _bars(args: argparse.Namespace) -> None:
    from mpisim.analysis.breakdown import draw
    from mpisim.analysis.plot import check_output, save

    for name in OF_CURVES:
        if getattr(args, name) is not None:
            flag = f"--{name.replace('_', '-')}"
            raise InputError(f"{flag}: is not allowed with --breakdown, which draws no curves")
    check_output(args.output)
    save(draw(args.logs, args.title), args.output)
