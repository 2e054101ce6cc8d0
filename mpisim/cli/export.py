"""The sub-command `mpisim export`."""

from __future__ import annotations

import argparse
from pathlib import Path

from mpisim.cli.parser import add_logs
from mpisim.core.errors import InputError

FORMS = (".csv", ".parquet")
EITHER = " or ".join(FORMS)


def add(parser: argparse.ArgumentParser) -> None:
    parser.description = "Write a row for each logged round of each log, with log, method and seed."
    add_logs(parser)
    forms = parser.add_mutually_exclusive_group()
    for form, text in (("csv", "write CSV"), ("parquet", "write Parquet; needs pyarrow or polars")):
        forms.add_argument(f"--{form}", dest="form", action="store_const", const=form, help=text)
    parser.add_argument(
        "-o",
        "--out",
        metavar="FILE",
        type=Path,
        help="write this .csv or .parquet (default for one log: its name, ending like this)",
    )
    parser.set_defaults(command=export_command)


def export_command(args: argparse.Namespace, argv: list[str]) -> int:
    from mpisim.analysis.log_files import find, readable, write_output
    from mpisim.analysis.rows import all_rows, to_csv, to_parquet

    paths = find(args.logs)
    out = _output(args, paths)
    rows = all_rows(readable(paths)[0])
    write_output(out, (to_csv if out.suffix.lower() == ".csv" else to_parquet)(rows))
    print(out)
    return 0


def _output(args: argparse.Namespace, logs: list[Path]) -> Path:
    if args.form is None and args.out is None:
        raise InputError(
            f"--csv or --parquet is needed, or --out with a name that ends in {EITHER}"
        )
    suffixes = FORMS if args.form is None else (f".{args.form}",)
    if args.out is None:
        if len(logs) > 1:
            raise InputError(f"--out: is needed for {len(logs)} logs, which go into one file")
        return logs[0].with_suffix(suffixes[0])
    if args.out.suffix.lower() not in suffixes:
        allowed = " or ".join(suffixes)
        raise InputError(f"--out: {args.out} is not allowed; the name must end in {allowed}")
    return args.out
