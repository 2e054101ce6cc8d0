"""Arguments that several sub-commands share."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_experiment(parser: argparse.ArgumentParser) -> None:
    """FILE.toml, --set and --plugin: an experiment, from a file or not."""
    parser.add_argument(
        "file", metavar="FILE.toml", nargs="?", type=Path, help="the experiment file"
    )
    add_settings(parser, "wins over the file; repeatable")


def add_settings(parser: argparse.ArgumentParser, help: str) -> None:
    """--set, explained by ``help``, and --plugin."""
    parser.add_argument("--set", metavar="TABLE.KEY=VALUE", action="append", default=[], help=help)
    add_plugin(parser)


def add_plugin(parser: argparse.ArgumentParser) -> None:
    """--plugin."""
    parser.add_argument(
        "--plugin",
        metavar="MODULE",
        action="append",
        default=[],
        help="import a module with own compressors, problems, ...",
    )
