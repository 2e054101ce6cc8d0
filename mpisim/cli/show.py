"""The sub-command `mpisim show`."""

from __future__ import annotations

import argparse
from pathlib import Path

from mpisim.cli.parser import add_framing


def add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("log", metavar="LOG", type=Path, help="a log")
    add_framing(parser)
    parser.set_defaults(command=show_command)


def show_command(args: argparse.Namespace, argv: list[str]) -> int:
    from mpisim.analysis.show import show_text

    print(show_text(args.log, bool(args.framing)))
    return 0
