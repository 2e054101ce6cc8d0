"""The sub-command `mpisim info`."""

from __future__ import annotations

import argparse


def add(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=info_command)


def info_command(args: argparse.Namespace, argv: list[str]) -> int:
    from mpisim.runs.host import info_text

    print(info_text())
    return 0
