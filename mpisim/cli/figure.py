"""The sub-commands `mpisim figure` and `mpisim claims`."""

from __future__ import annotations

import argparse
from pathlib import Path

from mpisim.cli.parser import require_mpi

PICTURES = Path("figures")


def add_figure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `mpisim figure`."""
    parser.add_argument("name", metavar="STUDY-FIGURE", help="as `mpisim study` lists it")
    parser.add_argument(
        "--logs", metavar="FOLDER", type=Path, help="of a sweep (default: the figure's own)"
    )
    add_out(parser)
    parser.set_defaults(command=figure)


def add_out(parser: argparse.ArgumentParser) -> None:
    """Add --out."""
    parser.add_argument(
        "--out", metavar="FOLDER", type=Path, default=PICTURES, help="of pictures and claims"
    )


def add_claims(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `mpisim claims`."""
    parser.add_argument(
        "folder", metavar="FOLDER", nargs="?", type=Path, default=PICTURES, help="of the claims"
    )
    parser.add_argument(
        "--markdown", action="store_true", help="as tables for a document, with the papers' words"
    )
    parser.set_defaults(command=claims)


def figure(args: argparse.Namespace, argv: list[str]) -> int:
    """Draw OUT/NAME.png and .pdf, write OUT/NAME.claims.json, print the claims."""
    require_mpi()  # which the modules of an experiment import
    from mpisim.analysis.study import find
    from mpisim.analysis.study.draw import draw

    print(draw(*find(args.name), args.logs, args.out))
    return 0


def claims(args: argparse.Namespace, argv: list[str]) -> int:
    """Print the claims of all figures in a folder, study by study."""
    from mpisim.analysis.claims import SUFFIX, markdown, overview, read
    from mpisim.core.errors import InputError

    paths = sorted(args.folder.glob(f"*{SUFFIX}"))
    if not paths:
        raise InputError(f"{args.folder}: no *{SUFFIX} there; draw a figure of a study first")
    figures = {path.name.removesuffix(SUFFIX): read(path) for path in paths}
    print((markdown if args.markdown else overview)(figures))
    return 0
