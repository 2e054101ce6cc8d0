"""The sub-command `mpisim run`."""

from __future__ import annotations

import argparse
from pathlib import Path

from mpisim.cli.parser import add_accept, add_experiment, command_line, on_all_ranks


def add(parser: argparse.ArgumentParser) -> None:
    add_experiment(parser)
    parser.add_argument(
        "--workers", metavar="N", type=int, help="the same as --set problem.workers=N"
    )
    parser.add_argument(
        "--out", metavar="LOG.h5", type=Path, help="the log (default: logs/NAME-HASH.h5)"
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="continue from the log's checkpoint; start if there is nothing",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="overwrite an existing log; with --resume: one that cannot be resumed",
    )
    add_accept(parser)
    parser.set_defaults(command=run_command)


def run_command(args: argparse.Namespace, argv: list[str]) -> int:

    def body(comm) -> int:
        from mpisim.runs.experiment import read
        from mpisim.runs.loop import run
        from mpisim.runs.record import Output
        from mpisim.runs.status import EXIT_CODES, STOPPED
        from mpisim.runs.tables import digest

        workers = [] if args.workers is None else [f"problem.workers={args.workers}"]
        experiment = read(args.file, args.set + workers)
        stem = args.file.stem if args.file else experiment.method.name
        # with the hash of the experiment: other experiments have other logs
        out = args.out or Path("logs") / f"{stem}-{digest(experiment.to_toml())}.h5"
        flags = args.force, args.resume, args.accept_changes
        result = run(experiment, Output(out, *flags, command_line(argv)), comm)
        if comm.rank == 0 and result.status not in STOPPED:  # else there is a line already
            row = result.row
            found = f"loss {row.loss:.6g}, |grad f|^2 {row.grad_norm_sq:.6g}"
            by = result.stopped_by
            why = f" (run.stop.{by})" if by not in ("", "rounds") else ""
            print(f"{result.status}: round {row.round}{why}, {found}, log {out}")
        return EXIT_CODES[result.status]

    return on_all_ranks(args, body)
