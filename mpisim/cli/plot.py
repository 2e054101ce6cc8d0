"""The sub-command `mpisim plot`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from mpisim.cli.parser import add_framing, add_logs
from mpisim.core.errors import InputError

OF_CURVES = ("x", "y", "network", "linear_x", "linear_y", "all_workers", "framing")
OF_AXES = ("xlim", "ylim", "xlabel", "ylabel")
ABOUT = (
    "Draw curves from logs. Runs that differ only in the seed make one curve: the mean of log y"
    " over the seeds, with a band of one sample standard deviation of log y on each side. With"
    " --linear-y mean and band are those of y. A single run has no band."
)


def add(parser: argparse.ArgumentParser) -> None:
    parser.description = ABOUT
    add_logs(parser)
    parser.add_argument(
        "--x",
        metavar="COLUMN",
        help="draw over this column of the logs, seconds or bits_total (default: bits_up)",
    )
    parser.add_argument("--y", metavar="COLUMN", help="draw this column (default: grad_norm_sq)")
    parser.add_argument(
        "-o",
        "--out",
        "--output",
        metavar="FILE",
        dest="output",
        type=Path,
        required=True,
        help="write the figure here: .png, .pdf or .svg",
    )
    parser.add_argument("--svg", action="store_true", help="also write the figure as .svg")
    parser.add_argument(
        "--network",
        metavar="RATE,LATENCY",
        help="draw over seconds modelled for a network: 100mbit,1ms; see docs/how-to/netlab.md",
    )
    parser.add_argument(
        "--breakdown",
        action="store_true",
        help="draw bars instead of curves: the seconds of a round by phase",
    )
    _add_axes(parser)
    _add_frame(parser)
    parser.set_defaults(command=plot_command)


def _add_axes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--linear-x", action="store_true", default=None, help="use a linear x axis")
    parser.add_argument("--linear-y", action="store_true", default=None, help="use a linear y axis")
    parser.add_argument(
        "--all-workers",
        action="store_true",
        default=None,
        help="sum bits and gradients over workers, instead of showing them per worker",
    )
    add_framing(parser)


def _add_frame(parser: argparse.ArgumentParser) -> None:
    """Add what `mpisim.analysis.frame` holds."""
    for axis in "xy":
        parser.add_argument(
            f"--{axis}lim",
            metavar=("LOW", "HIGH"),
            nargs=2,
            type=_limit,
            help=f"limit the {axis} axis; auto leaves a side to the data",
        )
    for axis in "xy":
        parser.add_argument(f"--{axis}label", metavar="TEXT", help=f"label the {axis} axis")
    parser.add_argument("--title", help="set the title (default: what the logs share)")
    parser.add_argument(
        "--size",
        metavar=("WIDTH", "HEIGHT"),
        nargs=2,
        type=float,
        help="set the size of the page in inches (default: 6 4.2, and more if the legend needs it)",
    )


def _limit(text: str) -> float | None:
    return None if text == "auto" else float(text)


_limit.__name__ = "number or auto"  # argparse names it in its message


def plot_command(args: argparse.Namespace, argv: list[str]) -> int:
    from mpisim.analysis.plot import check_output, save

    outputs = [args.output] + [args.output.with_suffix(".svg")] * args.svg
    for output in outputs:
        check_output(output)
    figure = _bars(args) if args.breakdown else _curves(args)
    for output in dict.fromkeys(outputs):
        save(figure, output)
        print(output)
    return 0


def _curves(args: argparse.Namespace) -> Any:
    from mpisim.analysis.api import plot
    from mpisim.analysis.link_model import parse

    return plot(
        args.logs,
        args.x or ("bits_up" if args.network is None else "seconds"),
        args.y or "grad_norm_sq",
        per_worker=not args.all_workers,
        linear_x=args.linear_x,
        linear_y=bool(args.linear_y),
        title=args.title,
        network=None if args.network is None else parse(args.network),
        framing=bool(args.framing),
        size=args.size,
        **{name: getattr(args, name) for name in OF_AXES},
    )


def _bars(args: argparse.Namespace) -> Any:
    from mpisim.analysis.breakdown import draw
    from mpisim.analysis.log_files import load

    for name in OF_CURVES + OF_AXES:
        if getattr(args, name) is not None:
            flag = f"--{name.replace('_', '-')}"
            raise InputError(f"{flag}: is not allowed with --breakdown, which draws no curves")
    return draw(load(args.logs), args.title, args.size)
