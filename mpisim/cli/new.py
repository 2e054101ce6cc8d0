"""The sub-command `mpisim new`."""

from __future__ import annotations

import argparse
from pathlib import Path


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `mpisim new`."""
    kinds = parser.add_subparsers(required=True, metavar="KIND")
    study = kinds.add_parser("study", help="a folder with a grid of runs, a figure and its claims")
    study.add_argument("folder", metavar="FOLDER", type=Path, help="new, or empty")
    study.set_defaults(command=new_study)


def new_study(args: argparse.Namespace, argv: list[str]) -> int:
    """Run ``mpisim new study``."""
    from mpisim.analysis.study.new import create

    for path in create(args.folder):
        print(path)
    print(f"\nmpisim study {args.folder}         # its figures")
    print(f"mpisim study {args.folder} fig1    # run, draw")
    return 0
