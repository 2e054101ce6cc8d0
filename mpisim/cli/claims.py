"""The sub-command `mpisim claims`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mpisim.cli.figure import PICTURES
from mpisim.core.errors import InputError

if TYPE_CHECKING:
    from mpisim.analysis.claims import Claim


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `mpisim claims`."""
    parser.add_argument(
        "folders",
        metavar="FOLDER",
        nargs="*",
        type=Path,
        default=[PICTURES],
        help="folders of pictures and claims, or of results on record (default: figures)",
    )
    parser.add_argument(
        "--markdown", action="store_true", help="print tables in Markdown, with the papers' words"
    )
    parser.set_defaults(command=claims)


def claims(args: argparse.Namespace, argv: list[str]) -> int:
    """Print the claims of all figures in the folders, study by study.

    `InputError` after them names the first file that cannot be read.
    """
    from mpisim.analysis.claims import markdown, overview

    studies: dict[str, dict[str, Sequence[Claim]]] = {}
    refused: list[InputError] = []
    for folder in args.folders:
        found, errors = _read(folder)
        refused += errors
        for study, figures in found.items():
            studies.setdefault(study, {}).update(figures)
    if studies:
        print((markdown if args.markdown else overview)(studies))
    if refused:
        raise refused[0]
    return 0


def _read(folder: Path) -> tuple[Mapping[str, Mapping[str, Sequence[Claim]]], list[InputError]]:
    """{study: {figure: claims}}, of results {study and scale: {figure: claims}}; and errors."""
    from mpisim.analysis import results
    from mpisim.analysis.claims import SUFFIX, read_folder

    recorded = results.read(folder)
    if recorded:
        return results.by_scale(recorded), []
    found, errors = read_folder(folder)
    if not found and not errors:
        raise InputError(f"{folder}: no *{SUFFIX} there; draw a figure of a study first")
    return found, errors
