"""The sub-command `mpisim report`."""

from __future__ import annotations

import argparse
from pathlib import Path

from mpisim.cli.table import add_target
from mpisim.core.errors import InputError

NETWORKS = ("10mbit", "100mbit", "1gbit")


def add(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Write one page for the browser, which needs no network: settings, curves over rounds,"
        " bits, measured and modelled seconds, tables, seconds by phase, provenance."
    )
    parser.add_argument(
        "folder", metavar="FOLDER", type=Path, help="a folder of logs, also in folders below it"
    )
    parser.add_argument(
        "-o", "--out", metavar="FILE", type=Path, required=True, help="write the page here, .html"
    )
    parser.add_argument("--title", default="", help="set the title (default: the folder's name)")
    add_target(
        parser,
        required=False,
        help="count costs until this, as `mpisim table` does; repeatable (default: powers of ten of"
        " grad_norm_sq)",
    )
    parser.add_argument(
        "--network",
        metavar="RATE,LATENCY",
        action="append",
        help="model the seconds for this network; repeatable; see docs/how-to/netlab.md (default:"
        f" {', '.join(NETWORKS)})",
    )
    parser.set_defaults(command=report_command)


def report_command(args: argparse.Namespace, argv: list[str]) -> int:
    """Write the page about all logs that can be read."""
    from mpisim.analysis.costs import parse as target
    from mpisim.analysis.link_model import parse as links
    from mpisim.analysis.log_files import below, by_settings, readable, write_output
    from mpisim.analysis.report import report

    if args.out.suffix.lower() != ".html":
        raise InputError(f"--out: {args.out} is not allowed; the name must end in .html")
    networks = [links(text) for text in args.network or NETWORKS]
    targets = [target(text) for text in args.target]
    logs, refused = readable(by_settings(below(args.folder)))
    page = report(
        args.folder, logs, networks=networks, targets=targets, title=args.title, refused=refused
    )
    write_output(args.out, page.encode())
    print(args.out)
    return 0
