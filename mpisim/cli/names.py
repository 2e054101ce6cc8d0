"""The sub-commands `mpisim methods`, `compressors` and `problems`: what there is, a line each."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable

from mpisim.cli.parser import PLUGIN, arguments, on_all_ranks


def add_methods(parser: argparse.ArgumentParser) -> None:
    _add(parser, "method", _methods)


def add_compressors(parser: argparse.ArgumentParser) -> None:
    _add(parser, "compressor", _compressors)


def add_problems(parser: argparse.ArgumentParser) -> None:
    _add(parser, "problem", _problems)


Kinds = dict[str, tuple[type, ...]]


def _add(parser: argparse.ArgumentParser, table: str, kinds: Callable[[], Kinds]) -> None:
    forms = {f"name [{table.upper()}]": f"describe this {table}, with its keys", **PLUGIN}
    arguments(parser, forms)

    def command(args: argparse.Namespace, argv: list[str]) -> int:
        def body(comm) -> int:
            if comm.rank == 0:
                print(_text(args.name, table, kinds()))
            return 0

        return on_all_ranks(args, body)

    parser.set_defaults(command=command)


def _methods() -> Kinds:
    from mpisim.methods.estimators import ESTIMATORS
    from mpisim.methods.method_table import METHODS
    from mpisim.methods.optimizers import OPTIMIZERS

    return {
        name: (ESTIMATORS[pair.estimator], OPTIMIZERS[pair.optimizer])
        for name, pair in METHODS.items()
    }


def _compressors() -> Kinds:
    from mpisim.compressors import COMPRESSORS

    return {name: (kind,) for name, kind in COMPRESSORS.items()}


def _problems() -> Kinds:
    from mpisim.problems import PROBLEMS

    return {name: (kind,) for name, kind in PROBLEMS.items()}


def _text(name: str | None, table: str, kinds: Kinds) -> str:
    """A line for each name; of one name its documentation and keys."""
    from mpisim.analysis.formatting import columns
    from mpisim.core.schema import choose

    if name is None:
        return columns([[one, _line(halves)] for one, halves in sorted(kinds.items())], indent="")
    halves = choose(kinds, name, table)
    texts = [inspect.getdoc(half) or "" for half in halves]
    return "\n\n".join([*texts, f"{table} keys\n{columns(_keys(halves))}"])


def _line(halves: tuple[type, ...]) -> str:
    """The first lines of the documentation; of a method the rule of another step than GD's, too."""
    estimator, *optimizer = halves
    others = [half for half in optimizer if half.name != "gd"]  # type: ignore[attr-defined]
    lines = [(inspect.getdoc(half) or "").split("\n\n")[0] for half in (estimator, *others)]
    return "; ".join(" ".join(line.split()).rstrip(".") for line in lines if line)


def _keys(halves: tuple[type, ...]) -> list[list[str]]:
    """Key, what it allows, and its default."""
    import dataclasses
    import typing

    from mpisim.core.schema import describe

    return [
        [
            field.name.rstrip("_"),
            describe(typing.get_type_hints(half)[field.name]),
            "required" if field.default is dataclasses.MISSING else f"default {field.default!r}",
        ]
        for half in halves
        for field in dataclasses.fields(half)
        if field.init
    ]
