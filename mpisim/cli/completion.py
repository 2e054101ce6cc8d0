"""The sub-command `mpisim completion`."""

from __future__ import annotations

import argparse
from pathlib import Path

from mpisim.core.errors import library

SHELLS = {
    "bash": "mpisim completion bash > ~/.local/share/bash-completion/completions/mpisim",
    "zsh": "mpisim completion zsh > ~/.zfunc/_mpisim, with ~/.zfunc in fpath",
    "tcsh": "mpisim completion tcsh > ~/.mpisim.tcsh, which ~/.tcshrc sources",
}


def add(parser: argparse.ArgumentParser) -> None:
    uses = "; ".join(SHELLS.values())
    parser.description = f"Print a script that completes commands, flags and files: {uses}."
    parser.add_argument("shell", choices=SHELLS)
    parser.set_defaults(command=completion_command)


def completion_command(args: argparse.Namespace, argv: list[str]) -> int:
    """Print the script, made from the parsers of all sub-commands."""
    from mpisim.cli.entry import whole_parser

    shtab = library("shtab", "completion", "mpisim completion")
    parser = whole_parser()
    _prepare(parser, shtab.FILE)
    print(shtab.complete(parser, args.shell))
    return 0


def _prepare(parser: argparse.ArgumentParser, files: dict[str, str]) -> None:
    """Say which arguments are files, in a parser and those of its sub-commands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                _prepare(inner, files)
            continue
        if action.choices is not None:
            action.choices = list(action.choices)  # shtab takes a dict for sub-commands
        if action.type is Path or action.dest in ("plugin", "plugins"):
            action.complete = files  # type: ignore[attr-defined]
