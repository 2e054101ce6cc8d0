"""The sub-command `mpisim table`."""

from __future__ import annotations

import argparse

from mpisim.cli.parser import add_framing, add_logs


def add(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Print the rounds, payload bits and seconds until the first logged row that meets a target:"
        " mean ± sample standard deviation over the seeds."
    )
    add_logs(parser)
    add_target(
        parser,
        required=True,
        help="count until this is met: grad_norm_sq=1e-3, or 'test_accuracy>=0.9'; repeatable",
    )
    parser.add_argument(
        "--network",
        metavar="RATE,LATENCY",
        help="model the seconds for a network, such as 100mbit,1ms; see docs/how-to/netlab.md",
    )
    add_framing(parser)
    forms = parser.add_mutually_exclusive_group()
    for form, text in (
        ("latex", "print LaTeX, in the style of booktabs"),
        ("markdown", "print Markdown"),
        ("csv", "print CSV, with all digits"),
    ):
        forms.add_argument(f"--{form}", dest="form", action="store_const", const=form, help=text)
    parser.set_defaults(command=table_command)


def add_target(parser: argparse.ArgumentParser, required: bool, help: str) -> None:
    """Add --target."""
    parser.add_argument(
        "--target",
        metavar="COLUMN=LEVEL",
        action="append",
        default=[],
        required=required,
        help=help,
    )


def table_command(args: argparse.Namespace, argv: list[str]) -> int:
    from mpisim.analysis.costs import cost_table, parse
    from mpisim.analysis.link_model import parse as links
    from mpisim.analysis.log_files import find, readable

    targets = [parse(text) for text in args.target]
    network = None if args.network is None else links(args.network)
    logs, _ = readable(find(args.logs))
    print(cost_table(logs, targets, args.form or "text", network, bool(args.framing)))
    return 0
