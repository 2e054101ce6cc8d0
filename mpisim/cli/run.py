"""The sub-command `mpisim run`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mpisim.cli.parser import (
    ACCEPT,
    EXPERIMENT,
    arguments,
    command_line,
    on_all_ranks,
    prepare_mpi,
)
from mpisim.core import launcher
from mpisim.core.errors import InputError
from mpisim.core.terminal import is_terminal

if TYPE_CHECKING:
    from mpisim.runs.evaluation import End
    from mpisim.runs.experiment import Experiment


ARGUMENTS = {
    **EXPERIMENT,
    "--workers N": "set problem.workers",
    "--out LOG.h5": "write the log here (default: logs/NAME-HASH.h5)",
    "--resume": "continue from the log's checkpoint, or start if there is none",
    "--force": "overwrite an existing log; with --resume, only one that cannot be resumed",
    "--track TRACKER": "also send the rows to tensorboard, wandb or mlflow, as they are written",
    **ACCEPT,
}


def add(parser: argparse.ArgumentParser) -> None:
    arguments(parser, ARGUMENTS, track={"default": ""})
    parser.set_defaults(command=run_command)


def run_command(args: argparse.Namespace, argv: list[str]) -> int:
    """Run ``mpisim run``. The first line comes before MPI starts, which takes a second."""
    prepare_mpi()
    planned = _read(args)
    if not isinstance(planned, Exception) and launcher.rank() == 0:
        _announce(*planned)

    def body(comm) -> int:
        from mpisim.runs.loop import run
        from mpisim.runs.record import Output
        from mpisim.runs.signals import EXIT_CODES, STOPPED

        if isinstance(planned, Exception):
            raise planned
        experiment, out = planned
        flags = args.force, args.resume, args.accept_changes
        output = Output(out, *flags, command_line(argv), closing=False, track=args.track)
        result = run(experiment, output, comm)
        if comm.rank == 0 and result.status not in STOPPED:  # else there is a line already
            print(_done(result, out))
        return EXIT_CODES[result.status]

    return on_all_ranks(args, body)


def _read(args: argparse.Namespace) -> tuple[Experiment, Path] | Exception:
    """The experiment and its log, or why there is none, which all ranks report together."""
    from mpisim.runs import plugins
    from mpisim.runs.experiment import read
    from mpisim.runs.identity import config_digest

    if args.file is None and not args.set:
        return InputError(
            "a file is needed: mpisim run FILE.toml; docs/tutorial/first-run.md has one to copy"
        )
    workers = [] if args.workers is None else [f"problem.workers={args.workers}"]
    try:
        plugins.load(args.plugin)
        experiment = read(args.file, args.set + workers)
    except Exception as error:
        return error
    stem = args.file.stem if args.file else experiment.method.name
    # with the hash of the experiment: other experiments have other logs
    return experiment, args.out or Path("logs") / f"{stem}-{config_digest(experiment.to_toml())}.h5"


def _announce(experiment: Experiment, out: Path) -> None:
    """What runs and where the log goes: under mpirun, which shows nothing by itself, or live."""
    from mpisim.runs.preview import headline

    if launcher.launched() or is_terminal(sys.stdout):
        print(headline(experiment, launcher.size(), out), flush=True)


def _done(result: End, out: Path) -> str:
    row, by = result.row, result.stopped_by
    why = f" (run.stop.{by})" if by not in ("", "rounds") else ""
    values = f"loss {row['loss']:.6g}, |grad f|^2 {row['grad_norm_sq']:.6g}"
    return f"{result.status}: round {row['round']}{why}, {values}{_pace(result)}, log {out}"


def _pace(result: End) -> str:
    """Seconds of the rounds, and rounds a second; nothing for a log that was complete before."""
    from mpisim.runs.progress import duration

    if result.before:
        return ""
    attributes = result.attributes
    seconds = (
        attributes["seconds_elapsed"]
        - attributes["seconds_setup"]
        - attributes["seconds_rehearsal"]
    )
    rounds = result.row["round"] - int(attributes.get("resumed", 0))
    rate = f" ({rounds / seconds:.3g} rounds/s)" if rounds and seconds > 0 else ""
    return f", {duration(seconds)}{rate}"
