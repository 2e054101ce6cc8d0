"""The sub-command `mpisim card`."""

from __future__ import annotations

import argparse
from io import BytesIO
from pathlib import Path
from typing import Any

from mpisim.cli.parser import PLUGIN, arguments, on_all_ranks
from mpisim.core.errors import InputError

KINDS = (".png", ".pdf", ".svg", ".html")
ARGUMENTS = {
    "name NAME": "a compressor",
    "--d DIMENSION ...": "a dimension; repeatable (default: 1000)",
    "--set compressor.KEY=VALUE ...": "set a key of the compressor; repeatable",
    **PLUGIN,
    "--vectors FILE": "also measure it on these: a .npy file, shape (vectors, d); their d is added",
    "-o --out FILE": "draw it among others, in the first d: .png, .pdf, .svg; .html holds both",
}


def add(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Print a compressor's bits, errors, constants and times, measured on vectors of four kinds."
    )
    arguments(parser, ARGUMENTS, d={"type": int}, vectors={"type": Path})
    parser.set_defaults(command=card_command)


def card_command(args: argparse.Namespace, argv: list[str]) -> int:
    dimensions = list(dict.fromkeys(args.d)) or [1000]
    if args.out and args.out.suffix.lower() not in KINDS:
        raise InputError(f"--out: {str(args.out)!r} does not end in {', '.join(KINDS)}")

    def body(comm) -> int:
        if comm.rank == 0:
            _write(_spec(args), dimensions, args.vectors, args.out)
        return 0

    return on_all_ranks(args, body)


def _spec(args: argparse.Namespace) -> dict[str, Any]:
    """The compressor's table."""
    from mpisim.runs.experiment import apply

    tables: dict[str, Any] = {"compressor": {"name": args.name}}
    for setting in args.set:
        apply(tables, setting)
    if tables.keys() != {"compressor"}:
        raise InputError("--set: a card has keys of compressor alone, compressor.KEY=VALUE")
    return tables["compressor"]


def _write(
    spec: dict[str, Any], dimensions: list[int], vectors: Path | None, out: Path | None
) -> None:
    from mpisim.analysis.card import card, chart, page, vectors_of
    from mpisim.analysis.plot import save
    from mpisim.analysis.style import check_installed

    if out:
        check_installed()
    given = vectors_of(vectors) if vectors else None
    if given is not None:
        dimensions = list(dict.fromkeys([*dimensions, given.shape[1]]))
    text = card(spec, dimensions, given)
    print(text, flush=True)
    if out and out.suffix.lower() == ".html":
        picture = BytesIO()
        chart(dimensions[0], spec).savefig(picture, format="png")
        out.write_text(page(text, picture.getvalue()), encoding="utf-8")
    elif out:
        save(chart(dimensions[0], spec), out)
    if out:
        print(f"wrote {out}")
