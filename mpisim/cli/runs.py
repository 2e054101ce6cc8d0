"""`mpisim run`, `sweep`, `tune` and `theory`: what an experiment file is for."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mpisim.cli.entry import command_line, on_all_ranks, prepare_mpi
from mpisim.comm.job import on_first
from mpisim.core import machine
from mpisim.core.errors import InputError
from mpisim.core.files import require_log_name
from mpisim.core.terminal import is_terminal, report
from mpisim.runs import plugins
from mpisim.runs.experiment import Experiment, read, read_toml
from mpisim.runs.identity import config_digest
from mpisim.runs.labels import Tables, headline
from mpisim.runs.metrics import End
from mpisim.runs.progress import duration
from mpisim.runs.stop import EXIT_CODES, STOPPED


def run(args: argparse.Namespace) -> int:
    """The first line, under mpirun and live, comes before MPI starts, which takes a second."""
    prepare_mpi()
    planned = _read(args)
    shown = machine.launched() or is_terminal(sys.stdout)
    if shown and not isinstance(planned, Exception) and machine.launched_rank() == 0:
        experiment, out = planned
        print(headline(experiment, machine.launched_ranks(), out), flush=True)

    def body(comm) -> int:
        from mpisim.runs.loop import run
        from mpisim.runs.record import Output

        if isinstance(planned, Exception):
            raise planned
        experiment, out = planned
        flags = args.force, args.resume, args.accept_changes
        output = Output(out, *flags, command_line(args.argv), closing=False, track=args.track)
        result = run(experiment, output, comm)
        if comm.rank == 0 and result.status not in STOPPED:  # else there is a line already
            print(_done(result, out))
        return EXIT_CODES[result.status]

    return on_all_ranks(args, body)


def _read(args: argparse.Namespace) -> tuple[Experiment, Path] | Exception:
    """The experiment and its log, or why there is none, which all ranks report together."""
    if args.file is None and not args.set:
        return InputError(
            "a file is needed: mpisim run FILE.toml; docs/tutorial/first-run.md has one to copy"
        )
    workers = [] if args.workers is None else [f"problem.workers={args.workers}"]
    try:
        if args.out:
            require_log_name(args.out, "--out")
        plugins.load(args.plugin)
        experiment = read(args.file, args.set + workers)
    except Exception as error:
        return error
    stem = args.file.stem if args.file else experiment.method.name
    # with the hash of the experiment: other experiments have other logs
    return experiment, args.out or Path("logs") / f"{stem}-{config_digest(experiment.to_toml())}.h5"


def _done(result: End, out: Path) -> str:
    row, by = result.row, result.stopped_by
    why = f" (run.stop.{by})" if by not in ("", "rounds") else ""
    values = f"loss {row['loss']:.6g}, |grad f|^2 {row['grad_norm_sq']:.6g}"
    return f"{result.status}: round {row['round']}{why}, {values}{_pace(result)}, log {out}"


def _pace(result: End) -> str:
    """Seconds of the rounds, and rounds a second; nothing for a log that was complete before."""
    if result.before:
        return ""
    attributes = result.attributes
    names = ("elapsed", "setup", "rehearsal")
    elapsed, *before = (attributes[f"seconds_{name}"] for name in names)
    seconds = elapsed - sum(before)
    rounds = result.row["round"] - int(attributes.get("resumed", 0))
    rate = f" ({rounds / seconds:.3g} rounds/s)" if rounds and seconds > 0 else ""
    return f", {duration(seconds)}{rate}"


def sweep(args: argparse.Namespace) -> int:
    return on_all_ranks(args, lambda comm: _run_grid(args, comm, *_read_grid(args, comm))[1])


def spread_of(args: argparse.Namespace) -> Any:
    """What --ranks-per-run, --jobs, --separate and, where there is one, --shard say."""
    from mpisim.runs.sweep.points import Shard, Spread

    shard = getattr(args, "shard", Shard())
    return Spread(args.ranks_per_run, args.jobs, shard, args.separate)


def _read_grid(
    args: argparse.Namespace, comm, require: Callable[[list[Tables]], object] = len
) -> tuple[Path, list[Tables]]:
    """The folder of the logs and the points, of which all is as ``require`` wants it. Collective.

    The file is read once: it may be a pipe.
    """
    from mpisim.runs.sweep.grid import points

    def read() -> tuple[Path, list[Tables]]:
        tables = read_toml(args.file)
        alone = "sweep" not in tables
        folder, grid = points(tables, args.set, f"logs/{args.file.stem}")
        require(grid)
        if alone and len(grid) == 1:
            report(f"mpisim: {args.file}: has no [sweep], so it is a grid of one point")
        return args.out or folder, grid

    return on_first(comm, read)


def _run_grid(
    args: argparse.Namespace, comm, folder: Path, grid: list[Tables]
) -> tuple[list[Any], int]:
    """Run what is missing of the grid; all points, and the exit code."""
    from mpisim.runs.sweep.executor import sweep
    from mpisim.runs.sweep.points import counts, exit_code

    how = command_line(args.argv), args.accept_changes, spread_of(args)
    points = sweep(folder, grid, comm, *how)
    if comm.rank == 0:
        print(f"{counts(points)}; logs in {folder}", flush=True)
    return points, exit_code(points)


def tune(args: argparse.Namespace) -> int:
    if args.multiples is not None:
        args.set.append(f"sweep.multiples=[{args.multiples}]")

    def body(comm) -> int:
        from mpisim.analysis.tune import report, require_fit
        from mpisim.runs.sweep import grid

        def fits(points: list[Tables]) -> None:
            if args.multiples is not None and not any(map(grid.has_theory_step, points)):
                raise InputError('--multiples: of method.stepsize = "theory", which no point has')
            require_fit(args.criterion, points)

        folder, tables = _read_grid(args, comm, fits)
        points, code = _run_grid(args, comm, folder, tables)
        if comm.rank == 0 and code == 0:
            print(report(points, args.criterion, folder))
        return code

    return on_all_ranks(args, body)


def theory(args: argparse.Namespace) -> int:
    def body(comm) -> int:
        from mpisim.analysis.theory_report import report

        text = report(read(args.file, args.set), args.epsilon, comm)
        if comm.rank == 0:
            print(text, flush=True)
        return 0

    return on_all_ranks(args, body)
