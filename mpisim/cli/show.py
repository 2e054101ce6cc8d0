"""The sub-commands `mpisim show` and `mpisim export`: logs for readers and for programs."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mpisim.cli.parser import BEST, FRAMING, LOGS, SELECT, arguments, refuse
from mpisim.core.errors import InputError
from mpisim.core.terminal import is_terminal

if TYPE_CHECKING:
    from mpisim.runs.log.reader import Log

OF_LISTS = ("sort", "reverse", "all_settings")
ABOUT = (
    "Print a page about a log: settings, last values, bits and seconds by phase. Of a folder, with"
    " the folders in it, or of several logs, list the runs: settings that vary, status, last"
    " values. With --target, print the rounds, payload bits and seconds until the first logged row"
    " that meets it: mean ± sample standard deviation over the seeds."
)
ROWS = (".csv", ".parquet")


ALL_SETTINGS = {"--all-settings": "show every setting, not only those that vary"}
ARGUMENTS = {
    **LOGS,
    **SELECT,
    "--target COLUMN=LEVEL ...": "print what runs need until this is met: grad_norm_sq=1e-3, or"
    " 'test_accuracy>=0.9'; repeatable",
    "--network RATE,LATENCY": "with --target: model the seconds for a network, such as 100mbit,1ms;"
    " see docs/how-to/netlab.md",
    **FRAMING,
    "--sort COLUMN": "sort the list by one of its columns",
    "--reverse": "reverse the list",
    **ALL_SETTINGS,
    "--siunitx": "with --latex: set numbers by the package siunitx",
}
FORMS = {
    "--latex": "print LaTeX, in the style of booktabs",
    "--markdown": "print Markdown",
    "--csv": "print CSV, with all digits",
}
EXPORT = {
    **LOGS,
    **SELECT,
    "-o --out FILE": "write this .csv or .parquet (default for one log: its name, so ending)",
    **ALL_SETTINGS,
}
EXPORT_FORMS = {"--csv": "write CSV", "--parquet": "write Parquet; needs pyarrow or polars"}


def add(parser: argparse.ArgumentParser) -> None:
    parser.description = ABOUT
    arguments(parser, ARGUMENTS, best=BEST)
    add_forms(parser, FORMS)
    parser.set_defaults(command=show_command)


def add_export(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Write a row for each logged round of each log, with its label, seed, status, step size and"
        " the settings that vary."
    )
    arguments(parser, EXPORT, best=BEST)
    add_forms(parser, EXPORT_FORMS)
    parser.set_defaults(command=export_command)


def add_forms(parser: argparse.ArgumentParser, forms: Mapping[str, str]) -> None:
    group = parser.add_mutually_exclusive_group()
    for flag, text in forms.items():
        form = flag.strip("-")
        group.add_argument(flag, action="store_const", dest="form", const=form, help=text)


def show_command(args: argparse.Namespace, argv: list[str]) -> int:
    """Print the page of one log, the list of several, or what they cost until targets."""
    from mpisim.analysis import log_files
    from mpisim.analysis.select import selected

    if args.siunitx and args.form != "latex":
        raise InputError("--siunitx: is not allowed without --latex")
    first, alone = args.logs[0], len(args.logs) == 1
    if args.target:
        refuse(args, OF_LISTS, "with --target")
        print(_costs(args, selected(log_files.load(args.logs), args.where, args.best)))
        return 0
    below = first if alone and first.is_dir() else None
    paths = log_files.below(below) if below else log_files.find(args.logs)
    if below is None and alone and len(paths) == 1:
        from mpisim.analysis.show import show_text

        refuse(args, (*OF_LISTS, "form", "network", "where", "best", "siunitx"), "for one log")
        print(show_text(paths[0], args.framing))
        return 0
    refuse(args, ("framing", "network"), "for a list of runs")
    print(_list(args, selected(log_files.readable(paths)[0], args.where, args.best), below))
    return 0


def _list(args: argparse.Namespace, logs: list[Log], folder: Path | None) -> str:
    from mpisim.analysis.curves import LABELS
    from mpisim.analysis.formatting import escaped, latex, table
    from mpisim.analysis.show import fitted, in_order, run_list

    head, rows = run_list(folder, logs, args.all_settings, more=args.form == "csv")
    rows = in_order(head, rows, args.sort, args.reverse)
    if args.form == "markdown":
        rows = [[escaped(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
        head = [escaped(name) for name in head]
    if args.form is None and is_terminal(sys.stdout):
        return fitted(head, rows, shutil.get_terminal_size().columns)
    if args.form == "latex":
        names = {"loss": LABELS["loss"], "grad_norm_sq": LABELS["grad_norm_sq"]}
        return latex([names.get(name, name) for name in head], rows, siunitx=args.siunitx)
    return table(head, rows, args.form or "text")


def _costs(args: argparse.Namespace, logs: list[Log]) -> str:
    from mpisim.analysis.costs import cost_table, parse
    from mpisim.comm.links import parse as links

    targets = [parse(text) for text in args.target]
    network, form = None if args.network is None else links(args.network), args.form or "text"
    return cost_table(logs, targets, form, network, args.framing, args.siunitx)


def export_command(args: argparse.Namespace, argv: list[str]) -> int:
    from mpisim.analysis.log_files import find, readable, root, write_output
    from mpisim.analysis.rows import all_rows, to_csv, to_parquet
    from mpisim.analysis.select import selected

    paths = find(args.logs)
    out = _output(args, paths)
    logs = selected(readable(paths)[0], args.where, args.best)
    rows = all_rows(logs, root(args.logs, paths), args.all_settings)
    write_output(out, (to_csv if out.suffix.lower() == ".csv" else to_parquet)(rows))
    print(out)
    return 0


def _output(args: argparse.Namespace, logs: list[Path]) -> Path:
    if args.form is None and args.out is None:
        either = " or ".join(ROWS)
        raise InputError(
            f"--csv or --parquet is needed, or --out with a name that ends in {either}"
        )
    suffixes = ROWS if args.form is None else (f".{args.form}",)
    if args.out is None:
        if len(logs) > 1:
            raise InputError(f"--out: is needed for {len(logs)} logs, which go into one file")
        return logs[0].with_suffix(suffixes[0])
    if args.out.suffix.lower() not in suffixes:
        allowed = " or ".join(suffixes)
        raise InputError(f"--out: {args.out} is not allowed; the name must end in {allowed}")
    return args.out
