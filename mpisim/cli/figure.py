"""The sub-command `mpisim figure`."""

from __future__ import annotations

import argparse
from pathlib import Path

PICTURES = Path("figures")


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `mpisim figure`."""
    parser.add_argument("name", metavar="STUDY-FIGURE", help="a figure, as `mpisim study` lists it")
    parser.add_argument(
        "--logs",
        metavar="FOLDER",
        type=Path,
        help="read the logs here (default: the figure's folder)",
    )
    add_out(parser)
    parser.set_defaults(command=figure)


def add_out(parser: argparse.ArgumentParser) -> None:
    """Add --out."""
    parser.add_argument(
        "--out", metavar="FOLDER", type=Path, default=PICTURES, help="write picture and claims here"
    )


def figure(args: argparse.Namespace, argv: list[str]) -> int:
    """Draw OUT/NAME.png and .pdf, write OUT/NAME.claims.json, print the claims."""
    from mpisim.analysis.study import find
    from mpisim.analysis.study.figure import draw, write_drawn

    print(write_drawn(draw(*find(args.name), args.logs), args.out))
    return 0
