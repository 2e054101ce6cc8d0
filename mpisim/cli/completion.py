"""The script that completes commands, flags, files, settings, names, data sets and columns."""

from __future__ import annotations

import argparse
import dataclasses
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path

from mpisim.core.errors import library
from mpisim.core.schema import options

# bash would take what follows a "=" for another word.
PREAMBLE = {"bash": "COMP_WORDBREAKS=${COMP_WORDBREAKS//=/}"}


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script of a shell for a parser with the arguments of all sub-commands."""
    shtab = library("shtab", "completion", "mpisim --completion")
    _complete(parser, shtab.FILE, _words())
    return shtab.complete(parser, shell, preamble=PREAMBLE)


def _complete(
    parser: argparse.ArgumentParser, files: dict[str, str], words: Mapping[str, list[str]]
) -> None:
    """Say what completes the arguments of a parser and of those of its sub-commands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                _complete(inner, files, words)
            continue
        values = words.get(f"{parser.prog} {action.dest}", words.get(action.dest))
        if action.choices is not None or values is not None:
            action.choices = list(action.choices or values or ())  # shtab takes a dict for commands
        elif action.type is Path or action.dest in ("plugin", "plugins"):
            action.complete = files  # type: ignore[attr-defined]


def _words() -> dict[str, list[str]]:
    """{argument, or command and argument: what it may be}."""
    from mpisim.compressors import COMPRESSORS
    from mpisim.methods.method_table import METHODS
    from mpisim.problems import PROBLEMS
    from mpisim.problems.data.find import registry
    from mpisim.runs.log import schema

    kinds = {"methods": [*METHODS], "compressors": [*COMPRESSORS], "problems": [*PROBLEMS]}
    logged = (schema.ITERATE, schema.REFERENCE, schema.CUMULATIVE)
    columns = ["seconds", "bits_total", *(name for group in logged for name, *_ in group)]
    return {
        "set": sorted({*_settings(), *(f"problem.data={name}" for name in registry())}),
        **dict.fromkeys(("x", "y", "sort"), columns),
        "target": [f"{column}=" for column in columns],
        **{f"mpisim {command} name": sorted(names) for command, names in kinds.items()},
        "mpisim card name": sorted(COMPRESSORS),
        "like": sorted(METHODS),
        **{f"mpisim data {action} names": [*registry()] for action in ("fetch", "info")},
    }


def _settings() -> Iterator[str]:
    """TABLE.KEY=VALUE, for each value that a key may have, or its default, or nothing."""
    from mpisim.runs.experiment import tables_of_keys

    for table, kinds in tables_of_keys().items():
        yield from (f"{table}.name={name}" for name, _ in kinds if name)
        for _, kind in kinds:
            hints = typing.get_type_hints(kind)
            for field in dataclasses.fields(kind):
                if field.init and field.name != "name":
                    key = f"{table}.{field.name.rstrip('_')}="
                    yield from (f"{key}{value}" for value in _values(field, hints[field.name]))


def _values(field: dataclasses.Field, hint: object) -> list[str]:
    literals = [
        value
        for option in options(hint)
        if typing.get_origin(option) is typing.Literal
        for value in typing.get_args(option)
    ]
    default = field.default
    if isinstance(default, bool):
        literals = ["true", "false"]
    elif isinstance(default, int | float):
        literals.append(default)
    return [str(value) for value in literals] or [""]
