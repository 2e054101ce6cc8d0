"""The sub-command `mpisim verify`."""

from __future__ import annotations

import argparse

from mpisim.cli.parser import PLUGIN, arguments, on_all_ranks
from mpisim.runs.log.reader import read

ARGUMENTS = {
    "log LOG": "a log",
    "--rerun": "also repeat the run, with or without mpirun",
    **PLUGIN,
    "--load-plugins": "import the plugins that the log names",
}


def add(parser: argparse.ArgumentParser) -> None:
    arguments(parser, ARGUMENTS)
    parser.set_defaults(command=verify_command)


def verify_command(args: argparse.Namespace, argv: list[str]) -> int:
    """Run ``mpisim verify``: 0 if all checks pass, 1 if one fails, 2 if there is no log.

    A log may come from anywhere, so what it names is imported only on request.
    """

    def body(comm) -> int:
        from mpisim.analysis.verify.examine import examine
        from mpisim.comm.job import on_first
        from mpisim.runs import plugins
        from mpisim.runs.signals import EXIT_CODES

        log = on_first(comm, lambda: read(args.log, changed=True))
        if args.load_plugins:
            plugins.load(log.config.get("plugin", []))
        if comm.rank == 0:
            print(f"{log.path}: {log.rows} rows, {log.attrs.get('status', 'unknown')}")
        failed = 0
        for check in examine(log, args.rerun, bool(args.plugin or args.load_plugins), comm):
            if check.stopped:
                return EXIT_CODES[check.stopped]
            failed += bool(check.problems)
            if comm.rank == 0:
                print(check, flush=True)
        if comm.rank == 0:
            print(f"{args.log}: {f'{failed} checks failed' if failed else 'nothing is wrong'}")
        return int(failed > 0)

    return on_all_ranks(args, body)
