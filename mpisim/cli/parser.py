"""The parser of the command line, made from the table of commands: commands.toml.

Also the script that completes commands, flags, files, settings, names, data sets and columns.
"""

from __future__ import annotations

import argparse
import dataclasses
import pkgutil
import re
import typing
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from mpisim.core import VERSION
from mpisim.core.errors import InputError, library
from mpisim.core.machine import usable_cores
from mpisim.core.schema import options, package_table

TABLE = package_table(__file__, "commands.toml")
SHELLS = ("bash", "zsh", "tcsh")  # that --completion makes a script for
COMMANDS: Mapping[str, Mapping[str, Any]] = TABLE["commands"]


class Parser(argparse.ArgumentParser):
    """Raises a mistake as `InputError`, one line like every other bad input.

    Its help ends with the command's ``examples``.
    """

    examples: Sequence[str] = ()

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message}{_as_setting(message)} (see {self.prog} --help)")

    def format_help(self) -> str:
        examples = "".join(f"  {line}\n" for line in self.examples)
        return super().format_help() + (examples and f"\nexamples:\n{examples}")


def make_parser(chosen: Collection[str]) -> Parser:
    """The parser of all commands, with the arguments of those that are ``chosen``."""
    parser = Parser(prog="mpisim", description=TABLE["about"])
    parser.examples = TABLE["examples"]
    parser.set_defaults(call=None)
    parser.add_argument("--version", action="version", version=f"mpisim {VERSION}")
    _add_arguments(parser, TABLE["arguments"]["mpisim"])
    commands = parser.add_subparsers(metavar="COMMAND")
    for name, command in COMMANDS.items():
        text = command["help"]
        about = command.get("about", f"{text[0].upper()}{text[1:]}.")
        inner = commands.add_parser(name, help=text, description=about)
        if name in chosen:
            _add(inner, command, (name,))
    return parser


def _add(parser: Parser, command: Mapping[str, Any], words: tuple[str, ...]) -> None:
    """Add what the table says of a command, and its commands; ``words`` is its name."""
    parser.examples = command["examples"]
    if "call" in command:
        parser.set_defaults(call=command["call"], words=words)
    for name in command.get("arguments", ()):
        if name in TABLE["one_of"]:
            _add_arguments(parser.add_mutually_exclusive_group(), TABLE["one_of"][name])
        else:
            _add_arguments(parser, TABLE["arguments"][name])
    if "commands" in command:
        inner = parser.add_subparsers(metavar=command["metavar"], required="call" not in command)
        for name, one in command["commands"].items():
            _add(inner.add_parser(name, help=one["help"]), one, (*words, name))


def _add_arguments(group: argparse._ActionsContainer, forms: Mapping[str, Any]) -> None:
    """Add arguments from their forms, and helps or keywords of argparse.

    A form is an option with the names of its values (``-o --out FILE``, ``--size WIDTH HEIGHT``),
    none for a switch, and dots where it may be repeated (``--set TABLE.KEY=VALUE ...``). Or it is a
    positional argument: its name in Python, then ``LOG``. In brackets a value may be missing
    (``[LOG]``); dots there are for any number of values in one place (``[FOLDER ...]``), as they
    are for one or more of a positional argument (``LOG ...``). `VALUES` has the types.
    """
    for form, given in forms.items():
        more = {"help": given} if isinstance(given, str) else dict(given)
        words = form.split()
        flags = [word for word in words if word.startswith("-")]
        values = words[len(flags) or 1 :]
        metavars = tuple(value.strip("[]") for value in values if value.strip("]") != "...")
        how: dict[str, Any] = {}
        if metavars:
            how["metavar"] = metavars if len(metavars) > 1 else metavars[0]
            how["type"] = VALUES.get(metavars[0], str)
        elif "dest" in more:  # of several switches one is the value
            how |= {"action": "store_const", "const": words[0].strip("-")}
        else:
            how["action"] = "store_true"
        if len(metavars) > 1:
            how["nargs"] = len(metavars)
        elif values[-1:] == ["...]"]:
            how["nargs"] = "*"
        elif values[-1:] == ["..."]:
            how |= {"action": "append", "default": []} if flags else {"nargs": "+"}
        elif values and values[0].startswith("["):
            how["nargs"] = "?"
        if "choices" in more:
            more |= {"choices": pkgutil.resolve_name(more["choices"]), "metavar": None}
        group.add_argument(*(flags or words[:1]), **(how | more))


def _limit(text: str) -> float | None:
    return None if text == "auto" else float(text)


_limit.__name__ = "number or auto"  # argparse names it in its message


def _checked(text: str, good: bool, allowed: str) -> None:
    if not good:
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed; it must be {allowed}")


def _jobs(text: str) -> int:
    number = len(usable_cores()) if text == "auto" else int(text) if text.isdecimal() else 0
    _checked(text, number >= 1, "at least 1, or auto")
    return number


def _shard(text: str) -> Any:
    from mpisim.runs.sweep.points import Shard

    match = re.fullmatch(r"(\d+)/(\d+)", text, re.ASCII)
    shard = Shard(int(match[1]), int(match[2])) if match else Shard(0)
    _checked(text, 1 <= shard.part <= shard.parts, "I/N with integers 1 <= I <= N")
    return shard


VALUES: Mapping[str, Any] = {
    **dict.fromkeys(("FILE", "FOLDER", "LOG", "FILE.toml", "LOG.h5"), Path),
    **dict.fromkeys(("N", "R", "DIMENSION", "SEED"), int),
    **dict.fromkeys(("E", "WIDTH", "MS"), float),
    **{"LOW": _limit, "N|auto": _jobs, "I/N": _shard},
}


def refuse(args: argparse.Namespace, names: Iterable[str], where: str) -> None:
    """`InputError` for the first of these options that was given: it has no meaning ``where``."""
    for name in names:
        if (given := getattr(args, name)) or type(given) is int:  # 0 is given, too
            flag = given if name == "form" else name.replace("_", "-")
            raise InputError(f"--{flag}: is not allowed {where}")


def _as_setting(message: str) -> str:
    """``; did you mean --set run.rounds=100?`` for an unknown option that is a key."""
    _, unknown, words = message.partition("unrecognized arguments: --")
    if not unknown:
        return ""
    from mpisim.runs.experiment import keys_named  # for mistakes only

    flag, _, value = words.replace("=", " ", 1).partition(" ")
    keys = keys_named(flag)
    given = value.split(" ")[0] or "VALUE"
    return f"; did you mean --set {keys[0]}={given}?" if keys else ""


# bash would take what follows a "=" for another word.
PREAMBLE = {"bash": "COMP_WORDBREAKS=${COMP_WORDBREAKS//=/}"}


def completion_script(parser: argparse.ArgumentParser, shell: str) -> str:
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
    from mpisim.analysis.log_files import ATTRIBUTES
    from mpisim.analysis.tune import CRITERIA
    from mpisim.compressors import COMPRESSORS
    from mpisim.methods.method_table import METHODS
    from mpisim.problems import PROBLEMS
    from mpisim.problems.data.find import registry
    from mpisim.runs.log import schema
    from mpisim.runs.record import TRACKERS

    kinds = {"methods": [*METHODS], "compressors": [*COMPRESSORS], "problems": [*PROBLEMS]}
    logged = (schema.ITERATE, schema.REFERENCE, schema.CUMULATIVE)
    columns = ["seconds", "bits_total", *(name for group in logged for name, *_ in group)]
    return {
        "set": sorted({*_settings(), *(f"problem.data={name}" for name in registry())}),
        "where": [*ATTRIBUTES, *sorted({one.partition("=")[0] for one in _settings()})],
        "best": [*CRITERIA],
        "track": [*TRACKERS],
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
