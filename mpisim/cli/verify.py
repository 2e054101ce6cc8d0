"""The sub-command `mpisim verify`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from mpisim.cli.parser import PLUGIN, arguments, on_all_ranks
from mpisim.core.errors import InputError
from mpisim.runs.log.reader import Log, damaged, read
from mpisim.runs.log.schema import DIGEST

if TYPE_CHECKING:
    from mpisim.runs.experiment import Experiment


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
        from mpisim.analysis.verify.repeat import rerun, tables_of
        from mpisim.comm.job import on_first
        from mpisim.runs import plugins
        from mpisim.runs.signals import EXIT_CODES, STOPPED

        log = on_first(comm, lambda: read(args.log, changed=True))
        named = log.config.get("plugin", [])
        if args.load_plugins:
            plugins.load(named)
        lacks = "" if args.plugin or args.load_plugins else _lacking(named)
        if lacks and args.rerun:
            raise InputError(f"{args.log}: {lacks}")
        failed = on_first(comm, lambda: _check(log, lacks))
        if args.rerun and log.rows:
            status, problems = rerun(tables_of(log), log if comm.rank == 0 else None, comm)
            if status in STOPPED:
                return EXIT_CODES[status]
            if comm.rank == 0:
                text = f"every row of a second run on {comm.size} ranks, clocks apart"
                failed += _print(text, problems)
            failed = comm.bcast(failed)
        if comm.rank == 0:
            print(f"{args.log}: {f'{failed} checks failed' if failed else 'nothing is wrong'}")
        return int(failed > 0)

    return on_all_ranks(args, body)


def _lacking(plugins: object) -> str:
    """What a log with these plugins needs; empty if there are none."""
    if not plugins:
        return ""
    names = ", ".join(map(str, plugins if isinstance(plugins, list) else [plugins]))
    return f"its experiment needs {names}: --plugin names it, --load-plugins trusts the log"


def _check(log: Log, lacks: str) -> int:
    """The number of failed checks that need nothing else; ``lacks``: what its experiment needs."""
    from mpisim.analysis.verify.checks import as_written, checks
    from mpisim.analysis.verify.repeat import COLUMNS, replay, tables_of, why_not
    from mpisim.runs.experiment import parse

    print(f"{log.path}: {log.rows} rows, {log.attrs.get('status', 'unknown')}")
    with damaged(log.path):
        changed = _print(*as_written(log)) if DIGEST in log.attrs else 0
        failed = sum(_print(text, problems) for text, problems in checks(log))
        if not failed and log.rows:
            here = [name for name in COLUMNS if name in log.columns]
            text = f"{', '.join(here)}: recomputed from the seed"
            if lacks:
                print(f"  --  {text}: no, {lacks}")
                return changed
            try:
                experiment = parse(tables_of(log))
            except InputError as error:
                hint = "--plugin loads what is not mpisim's"
                raise InputError(f"{log.path}: {error}; {hint}") from None
            _print_code(log, experiment)
            reason = why_not(log, experiment)
            if reason:
                print(f"  --  {text}: no, {reason}; --rerun checks them")
            else:
                try:
                    failed += _print(text, replay(log, experiment))
                except TimeoutError as error:
                    print(f"  --  {text}: no, {error}")
    return changed + failed


def _print_code(log: Log, experiment: Experiment) -> None:
    """Whether one code, the one here, wrote the log. Another one need not be wrong."""
    from mpisim.runs.identity import executed_by, of_log, other_code

    for line in str(log.attrs.get("accepted_changes", "")).splitlines():
        print(f"  --  other code wrote the rows from {line}")
    text = other_code(of_log(log.attrs), executed_by(experiment))
    print(f"  --  the log {text}" if text else "  ok  the code that is here wrote the log")


def _print(text: str, problems: list[str]) -> int:
    """Print one check; returns 1 if it failed."""
    print(f"  {'!!' if problems else 'ok'}  {text}", flush=True)
    for problem in problems:
        print(f"      {problem}")
    return int(bool(problems))
