"""`mpisim methods`, `compressors`, `problems`: what there is, a line each; and `mpisim card`."""

from __future__ import annotations

import argparse
import dataclasses
import inspect
import shutil
import sys
import typing
from collections.abc import Callable
from io import BytesIO
from typing import Any

from mpisim.analysis.formatting import columns
from mpisim.cli.entry import on_first_rank
from mpisim.compressors import COMPRESSORS
from mpisim.core.errors import InputError
from mpisim.core.schema import choose, describe
from mpisim.core.terminal import is_terminal
from mpisim.methods.estimators import ESTIMATORS
from mpisim.methods.method_table import METHODS
from mpisim.methods.optimizers import OPTIMIZERS
from mpisim.problems import PROBLEMS
from mpisim.runs.experiment import apply

Kinds = dict[str, tuple[type, ...]]
KINDS: dict[str, Callable[[], Kinds]] = {
    "methods": lambda: {
        n: (ESTIMATORS[one.estimator], OPTIMIZERS[one.optimizer]) for n, one in METHODS.items()
    },
    "compressors": lambda: {n: (kind,) for n, kind in COMPRESSORS.items()},
    "problems": lambda: {n: (kind,) for n, kind in PROBLEMS.items()},
}
PICTURES = (".png", ".pdf", ".svg", ".html")  # of a card


def list_names(args: argparse.Namespace, argv: list[str]) -> int:
    """``mpisim methods``, ``compressors`` or ``problems``."""
    table = args.words[0]
    return on_first_rank(args, lambda: print(_text(args.name, table[:-1], KINDS[table]())))


def _text(name: str | None, table: str, kinds: Kinds) -> str:
    """A line for each name; of one name its documentation and keys."""
    if name is None:
        lines = columns([[one, _line(one, half)] for one, half in sorted(kinds.items())], indent="")
        width = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else None
        return "\n".join(line[:width] for line in lines.splitlines())
    halves = choose(kinds, name, table)
    texts = [inspect.getdoc(half) or "" for half in halves]
    return "\n\n".join([*texts, f"{table} keys\n{columns(_keys(halves))}"])


def _line(name: str, halves: tuple[type, ...]) -> str:
    """The first lines of the documentation.

    Of a method that is a pair, what its figures call it, and the rule of another step than GD's.
    """
    estimator, *optimizer = halves
    others = [half for half in optimizer if half.name not in ("gd", estimator.name)]  # type: ignore[attr-defined]
    lines = [(inspect.getdoc(half) or "").split("\n\n")[0] for half in (estimator, *others)]
    text = "; ".join(" ".join(line.split()).rstrip(".") for line in lines if line)
    paired = optimizer and estimator.name != name  # type: ignore[attr-defined]
    return f"{METHODS[name].label}: {text}" if paired else text


def _keys(halves: tuple[type, ...]) -> list[list[str]]:
    """Key, what it allows, and its default."""
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


def card(args: argparse.Namespace, argv: list[str]) -> int:
    if args.out and args.out.suffix.lower() not in PICTURES:
        raise InputError(f"--out: {str(args.out)!r} does not end in {', '.join(PICTURES)}")
    return on_first_rank(args, lambda: _write_card(args, _spec(args)))


def _spec(args: argparse.Namespace) -> dict[str, Any]:
    """The compressor's table."""
    tables: dict[str, Any] = {"compressor": {"name": args.name}}
    for setting in args.set:
        apply(tables, setting)
    if tables.keys() != {"compressor"}:
        raise InputError("--set: a card has keys of compressor alone, compressor.KEY=VALUE")
    return tables["compressor"]


def _write_card(args: argparse.Namespace, spec: dict[str, Any]) -> None:
    from mpisim.analysis import card, plot, style

    out, dimensions = args.out, list(dict.fromkeys(args.d)) or [1000]
    if out:
        style.check_installed()
    given = card.vectors_of(args.vectors) if args.vectors else None
    if given is not None:
        dimensions = list(dict.fromkeys([*dimensions, given.shape[1]]))
    text = card.card(spec, dimensions, given)
    print(text, flush=True)
    if out and out.suffix.lower() == ".html":
        picture = BytesIO()
        card.chart(dimensions[0], spec).savefig(picture, format="png")
        out.write_text(card.page(text, picture.getvalue()), encoding="utf-8")
    elif out:
        plot.save(card.chart(dimensions[0], spec), out)
    if out:
        print(f"wrote {out}")
