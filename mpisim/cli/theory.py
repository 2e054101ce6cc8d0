"""The sub-command `mpisim theory`."""

from __future__ import annotations

import argparse
from math import inf

from mpisim.cli.parser import EXPERIMENT, arguments, on_all_ranks
from mpisim.core.schema import require

ARGUMENTS = {
    **EXPERIMENT,
    "--epsilon E": "count until E|grad f|^2 <= E^2; under PL, until E f - f* <= E (default: 0.01)",
}


def add(parser: argparse.ArgumentParser) -> None:
    arguments(parser, ARGUMENTS, epsilon={"default": 1e-2})
    parser.set_defaults(command=theory_command)


def theory_command(args: argparse.Namespace, argv: list[str]) -> int:
    require(0 < args.epsilon < inf, "--epsilon", args.epsilon, "a number > 0")

    def body(comm) -> int:
        from mpisim.analysis.theory_report import report
        from mpisim.runs.experiment import read

        text = report(read(args.file, args.set), args.epsilon, comm)
        if comm.rank == 0:
            print(text, flush=True)
        return 0

    return on_all_ranks(args, body)
