"""The sub-command `mpisim list`."""

from __future__ import annotations

import argparse
from pathlib import Path


def add(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "List the runs of a folder and of the folders below it: settings that vary, status, last"
        " values."
    )
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="a folder of logs")
    parser.add_argument(
        "--sort", metavar="COLUMN", help="sort by a column of the table (default: by log)"
    )
    parser.add_argument("--reverse", action="store_true", help="reverse the order")
    parser.add_argument("--csv", action="store_true", help="print CSV, with all digits")
    parser.set_defaults(command=list_command)


def list_command(args: argparse.Namespace, argv: list[str]) -> int:
    """Print the table of all logs that can be read."""
    from mpisim.analysis.formatting import table
    from mpisim.analysis.log_files import below, readable
    from mpisim.analysis.show import in_order, run_list

    logs, _ = readable(below(args.folder))
    head, rows = run_list(args.folder, logs)
    rows = in_order(head, rows, args.sort, args.reverse)
    print(table(head, rows, "csv" if args.csv else "text"))
    return 0
