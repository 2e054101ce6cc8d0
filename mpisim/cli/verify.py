"""The sub-command `mpisim verify`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from mpisim.cli.parser import add_plugin

if TYPE_CHECKING:
    from mpi4py import MPI

STOPPED = {"interrupted": 130, "terminated": 143}


def add_verify(parser: argparse.ArgumentParser) -> None:
    """The flags of `mpisim verify`."""
    parser.add_argument("log", metavar="LOG", type=Path)
    parser.add_argument(
        "--rerun", action="store_true", help="repeat the run, too, with or without mpirun"
    )
    add_plugin(parser)
    parser.set_defaults(command=verify_command)


def verify_command(args: argparse.Namespace, argv: list[str]) -> int:
    """``mpisim verify``: 0 where nothing is wrong, 1 where something is, 2 for what is no log."""
    from mpisim.runs.launch import guarded

    return guarded(lambda comm: _verify(args, comm))


def _verify(args: argparse.Namespace, comm: MPI.Intracomm) -> int:
    from mpisim.analysis.verify.rerun import tables_of
    from mpisim.cli.entry import import_plugin
    from mpisim.comm.job import on_first

    for module in args.plugin:
        import_plugin(module)
    log, wrong = on_first(comm, lambda: _by_itself(args.log))
    if args.rerun and log.rows:
        status, again = _again(tables_of(log), log, comm)
        if status in STOPPED:
            return STOPPED[status]
        wrong += again
    if comm.rank == 0:
        print(f"{args.log}: {'nothing is wrong' if not wrong else f'{wrong} checks failed'}")
    return int(wrong > 0)


def _by_itself(path: Path):
    """The log, and how many checks failed that need nothing but it."""
    from mpisim.analysis.verify.checks import checks
    from mpisim.analysis.verify.replay import COLUMNS, replay, why_not
    from mpisim.analysis.verify.rerun import tables_of
    from mpisim.runs.experiment import parse
    from mpisim.runs.log.reader import damaged, read

    log = read(path)
    print(f"{path}: {log.rows} rows, {log.attrs.get('status', 'unknown')}")
    with damaged(path):
        wrong = sum(_said(text, problems) for text, problems in checks(log))
        if not wrong and log.rows:
            experiment = parse(tables_of(log))
            reason = why_not(log, experiment)
            text = f"{', '.join(COLUMNS)}: recomputed from the seed"
            if reason:
                print(f"  --  {text}: no, {reason}; --rerun checks them")
            else:
                wrong += _said(text, replay(log, experiment))
    return log, wrong


def _again(tables: dict, log, comm: MPI.Intracomm) -> tuple[str, int]:
    from mpisim.analysis.verify.rerun import rerun

    status, problems = rerun(tables, log if comm.rank == 0 else None, comm)
    text = f"every row of a second run on {comm.size} ranks, clocks apart"
    failed = _said(text, problems) if comm.rank == 0 and status not in STOPPED else 0
    return status, comm.bcast(failed)


def _said(text: str, problems: list[str]) -> int:
    """Print one check; 1 if it failed."""
    print(f"  {'!!' if problems else 'ok'}  {text}", flush=True)
    for problem in problems:
        print(f"      {problem}")
    return int(bool(problems))
