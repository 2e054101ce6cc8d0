"""The sub-command `mpisim card`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from mpisim.cli.parser import PLUGIN, arguments, on_all_ranks
from mpisim.core.errors import InputError

PICTURES = (".png", ".pdf", ".svg")
ARGUMENTS = {
    "name NAME": "a compressor",
    "--d DIMENSION ...": "a dimension; repeatable (default: 1000)",
    "--set compressor.KEY=VALUE ...": "set a key of the compressor; repeatable",
    **PLUGIN,
    "-o --out FILE": "also draw it among other compressors, in the first d: .png, .pdf or .svg",
}


def add(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Print a compressor's bits, errors, constants and times, measured on vectors of four kinds."
    )
    arguments(parser, ARGUMENTS, d={"type": int})
    parser.set_defaults(command=card_command)


def card_command(args: argparse.Namespace, argv: list[str]) -> int:
    dimensions = list(dict.fromkeys(args.d)) or [1000]
    if args.out and args.out.suffix.lower() not in PICTURES:
        raise InputError(f"--out: {str(args.out)!r} does not end in {', '.join(PICTURES)}")

    def body(comm) -> int:
        if comm.rank == 0:
            _write(_spec(args), dimensions, args.out)
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


def _write(spec: dict[str, Any], dimensions: list[int], out: Path | None) -> None:
    from mpisim.analysis.card import card, chart
    from mpisim.analysis.plot import save
    from mpisim.analysis.style import check_installed

    if out:
        check_installed()
    print(card(spec, dimensions), flush=True)
    if out:
        save(chart(dimensions[0], spec), out)
        print(f"wrote {out}")
